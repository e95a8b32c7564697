function __meow_complete
    set -l word (commandline -ct)
    for line in (sh -c $__meow_candidates meow (commandline -opc) "$word")
        if test "$line" = :files
            __fish_complete_path "$word"
        else
            printf '%s\n' $line
        end
    end
end
complete -c meow -f -a '(__meow_complete)'
