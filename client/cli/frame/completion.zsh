#compdef gpuctl
# SPDX-License-Identifier: Apache-2.0
# zsh completion of gpuctl: gpuctl completion zsh >"${fpath[1]}/_gpuctl"
_gpuctl()
{
    local line before
    local -a offered
    for line in "${(@f)$(gpuctl --complete "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
        case $line in
        :files)
            _files
            return
            ;;
        :command*)
            before=${line#:command }
            shift $before words
            ((CURRENT -= before))
            _normal
            return
            ;;
        ?*)
            line=${line//:/\\:}
            offered+=("${line/$'\t'/:}")
            ;;
        esac
    done
    _describe argument offered
}
[[ $zsh_eval_context[-1] == loadautofunc ]] && _gpuctl "$@" || compdef _gpuctl gpuctl
