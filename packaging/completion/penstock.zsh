#compdef penstock
# Completion of penstock for zsh: the command itself says what may come next.
_penstock_completion() {
  eval $(env _TYPER_COMPLETE_ARGS="${words[1,$CURRENT]}" _PENSTOCK_COMPLETE=complete_zsh penstock)
}

compdef _penstock_completion penstock
