# Completion of penstock for fish: the command itself says what may come next.
complete --command penstock --no-files --arguments "(env _PENSTOCK_COMPLETE=complete_fish _TYPER_COMPLETE_FISH_ACTION=get-args _TYPER_COMPLETE_ARGS=(commandline -cp) penstock)" --condition "env _PENSTOCK_COMPLETE=complete_fish _TYPER_COMPLETE_FISH_ACTION=is-args _TYPER_COMPLETE_ARGS=(commandline -cp) penstock"
