# Completion of penstock for bash: the command itself says what may come next.
_penstock_completion() {
    local IFS=$'\n'
    COMPREPLY=($(env COMP_WORDS="${COMP_WORDS[*]}" COMP_CWORD="$COMP_CWORD" \
        _PENSTOCK_COMPLETE=complete_bash "$1"))
}

complete -o default -F _penstock_completion penstock
