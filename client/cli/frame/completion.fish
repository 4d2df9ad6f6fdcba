# SPDX-License-Identifier: Apache-2.0
# fish completion of gpuctl: gpuctl completion fish | source
function __gpuctl_complete
    set -l words (commandline -opc)
    set -l word (commandline -ct)
    for line in (gpuctl --complete $words[2..-1] "$word" 2>/dev/null)
        switch $line
            case ':*'
                __fish_complete_path "$word"
            case '*'
                echo $line
        end
    end
end
complete -c gpuctl -f -a '(__gpuctl_complete)'
