#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs beside a rank, as its user, for `gpuctl ssh`. "look" prints the account of the user. "serve KEY" serves one ssh connection on
# stdin and stdout with the node's own sshd, which lets in the holder of this public key alone. What sshd needs is in a folder of the
# attempt, goes when the connection ends, and with the attempt at the latest.
set -u
umask 077
unset LD_LIBRARY_PATH LD_PRELOAD # of the job's programs, not of the node's; sessions get them again

refuse() {
    printf 'gpuctl: %s\n  remedy: %s\n' "$1" "$2" >&2
    exit 1
}

first() {
    for file; do
        if [ -x "$file" ]; then
            printf '%s' "$file"
            return
        fi
    done
}

node=$GPUCTL_NODE
remedy="have an account of the name of the job's owner made on the nodes"
if [ -n "${GPUCTL_IMAGE-}" ]; then # it may lack any program of those below
    remedy="run the job without an image"
    for program in sshd bash id getent mktemp mkfifo setsid ssh-keygen; do
        (PATH=/usr/sbin:/usr/local/sbin:/sbin:$PATH && command -v $program >/dev/null) ||
            refuse "there is no $program in the job's container image $GPUCTL_IMAGE" \
                "use gpuctl exec -it and gpuctl cp, or an image with openssh-server and bash"
    done
fi
user=$(id -un 2>/dev/null) ||
    refuse "the job's user on node $node has no account, only the number $(id -u): ssh cannot log in" \
        "use gpuctl exec -it and gpuctl cp, or $remedy"
sshd=$(first /usr/sbin/sshd /usr/local/sbin/sshd /sbin/sshd)
[ -n "$sshd" ] || refuse "there is no sshd on node $node" "have openssh-server installed there (it need not run), or use gpuctl exec -it"
bash=$(first /bin/bash /usr/bin/bash /usr/local/bin/bash)
[ -n "$bash" ] || refuse "there is no bash on node $node, which sessions of ssh begin with" "have bash installed there, or use gpuctl exec -it"
shell=$(getent passwd "$user" 2>/dev/null | cut -d: -f7)
case ${shell##*/} in
nologin | false)
    refuse "the account $user on node $node may not log in: its shell is $shell" "use gpuctl exec -it, or have the account given a shell"
    ;;
esac
if [ "$1" = look ]; then
    echo "$user"
    exit
fi

# sshd insists on this folder where it runs as root; the service makes it where it runs
[ "$(id -u)" != 0 ] || [ -d /run/sshd ] || mkdir -m 755 /run/sshd
errors=${TORCHELASTIC_ERROR_FILE%/*} # the part of the attempt's folder that is the user's in any case
folder=$(mktemp -d "$errors/ssh.XXXXXX") && mkfifo "$folder/alive" &&
    ssh-keygen -q -t ed25519 -N '' -C '' -f "$folder/host_key" && printf '%s\n' "$2" >"$folder/authorized_keys" ||
    refuse "the job cannot write what sshd needs into its folder on node $node" "make room on the disk of the node"

# A session starts with an environment of sshd's: it gets that of the rank, and its folder.
cat >"$folder/enter" <<'END'
while IFS= read -r -d '' entry; do
    case ${entry%%=*} in
    '' | [0-9]* | *[!A-Za-z0-9_]* | BASH* | SSH_* | _ | EUID | OLDPWD | PPID | PWD | SHELL | SHELLOPTS | SHLVL | UID) ;;
    TERM) [[ -n ${TERM-} && $TERM != dumb ]] || export "$entry" ;;
    *) export "$entry" ;;
    esac
done <"/proc/$1/environ"
cd -P "/proc/$1/cwd" || exit
if [[ -z ${SSH_ORIGINAL_COMMAND+x} ]]; then
    exec "$SHELL"
fi
command=$SSH_ORIGINAL_COMMAND
unset SSH_ORIGINAL_COMMAND
exec "$SHELL" -c "$command"
END

sftp=$(first /usr/lib/openssh/sftp-server /usr/libexec/openssh/sftp-server /usr/lib/ssh/sftp-server /usr/libexec/sftp-server)
cat >"$folder/config" <<END
HostKey "$folder/host_key"
AuthorizedKeysFile "$folder/authorized_keys"
AuthenticationMethods publickey
PermitRootLogin prohibit-password
StrictModes no
UsePAM no
UseDNS no
PidFile none
PrintMotd no
PrintLastLog no
LogLevel FATAL
AcceptEnv LANG LC_* COLORTERM
ForceCommand exec "$bash" "$folder/enter" $$
${sftp:+Subsystem sftp "$sftp"}
END

# Nothing here can react to its own SIGKILL, which is how a connection that was cut ends: another session waits for that and cleans up.
setsid sh -c 'read -r _ <"$1/alive"; rm -rf "$1"' sh "$folder" </dev/null >/dev/null 2>&1 &
exec 3>"$folder/alive"
"$sshd" -i -e -f "$folder/config"
