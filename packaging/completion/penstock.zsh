#compdef penstock
# Completion of penstock for zsh. Made by `penstock completion zsh`.
autoload -Uz bashcompinit && bashcompinit
_penstock_words() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}
  local command= options= words= or_file= i
  COMPREPLY=()
  if [[ $current == "=" ]]; then # --option=: bash takes = for a word of its own
    current=
  elif [[ $previous == "=" ]]; then
    previous=${COMP_WORDS[COMP_CWORD-2]}
  fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    if [[ ${COMP_WORDS[i]} == -- ]]; then # the program's own words: commands, then files
      [[ $previous == -- ]] && COMPREPLY=($(compgen -c -- "$current"))
      return
    fi
    [[ -z $command && ${COMP_WORDS[i]} != -* ]] && command=${COMP_WORDS[i]}
  done
  case $command:$previous in
    run:--method|env:--method|config:--method) COMPREPLY=($(compgen -W "auto individual two_phase cyclic designated_writer dedicated_writer dynamic_segmentation static_segmentation write_behind observe off" -- "$current")); return ;;
    run:--writers|run:--cycle|run:--log-dir|run:--config|env:--writers|env:--cycle|env:--log-dir|env:--config|config:--writers|config:--cycle|config:--log-dir|config:--config|explain:--draw|simulate:--memory|simulate:--disk|simulate:--network|simulate:--paging-disk|simulate:--block|simulate:--buffer|simulate:--nodes|simulate:--startup|simulate:--sizes|simulate:--draw|bench:--matrix|bench:--out|bench:--budget|bench:--rounds|bench:--seed|bench:--ranks|bench:--threads|bench:--launcher|bench:--part|bench:--submit|bench:--sbatch|compare:--variant|compare:--cell|compare:--without|compare:--margin|reproduce:--dir|reproduce:--out|reproduce:--table|reproduce:--pages|reproduce:--rounds|reproduce:--budget|reproduce:--seed|reproduce:--launcher|report:--out|report:--margin|report:--cell|report:--without) return ;;
    run:--mpi|env:--mpi) COMPREPLY=($(compgen -W "mpich openmpi abi" -- "$current")); return ;;
    explain:--method) COMPREPLY=($(compgen -W "auto individual two_phase cyclic designated_writer dedicated_writer dynamic_segmentation static_segmentation write_behind" -- "$current")); return ;;
    simulate:--mapping) COMPREPLY=($(compgen -W "cyclic blocked" -- "$current")); return ;;
    simulate:--order) COMPREPLY=($(compgen -W "memory file" -- "$current")); return ;;
    simulate:--sweep) COMPREPLY=($(compgen -W "block paging-disk nodes" -- "$current")); return ;;
    bench:--mpi) COMPREPLY=($(compgen -W "none mpich openmpi abi" -- "$current")); return ;;
    bench:--export) COMPREPLY=($(compgen -W "parquet csv parquet,csv" -- "$current")); return ;;
    compare:--rate) COMPREPLY=($(compgen -W "application actual both" -- "$current")); return ;;
    reproduce:--size) COMPREPLY=($(compgen -W "quick full paper" -- "$current")); return ;;
    report:--format) COMPREPLY=($(compgen -W "html md svg png" -- "$current")); return ;;
    report:--rate) COMPREPLY=($(compgen -W "application actual" -- "$current")); return ;;
  esac
  case $command in
    "") words="run env config doctor list explain simulate log bench compare reproduce report completion --version --help" ;;
    run) options="--method --writers --cycle --observe --verify --require --quiet --no-log --log-dir --config --isolated --dry-run --mpi --thread-multiple --dump-config --json --help -h" ;;
    env) options="--method --writers --cycle --observe --verify --require --quiet --no-log --log-dir --config --isolated --mpi --dump-config --json --help -h" ;;
    config) options="--method --writers --cycle --observe --verify --require --quiet --no-log --log-dir --config --isolated --json --help -h" ;;
    doctor) options="--json --help -h" or_file=1 ;;
    list) options="--json --markdown --help -h" ;;
    explain) options="--method --draw --json --help -h" words="blocks heat holes interleaved" or_file=1 ;;
    simulate) options="--memory --disk --network --paging-disk --block --buffer --nodes --mapping --order --startup --sizes --sweep --draw --json --help -h" words="gotwals-1995" ;;
    log) options="--json --help -h" or_file=1 ;;
    bench) options="--matrix --out --budget --rounds --seed --mpi --ranks --threads --launcher --dry-run --keep --json --export --part --submit --sbatch --help -h" or_file=1 ;;
    compare) options="--variant --cell --without --rate --margin --strict --json --help -h" or_file=1 ;;
    reproduce) options="--size --dir --out --table --pages --rounds --budget --seed --launcher --dry-run --json --help -h" words="benson2003 gotwals1995 barro2002 liao2007 chaarawi2009" ;;
    report) options="--out --format --rate --margin --cell --without --help -h" or_file=1 ;;
    completion) options="--help -h" words="bash zsh fish" ;;
  esac
  [[ -n $or_file && $current != -* ]] && options= # files, where none of the words fits
  COMPREPLY=($(compgen -W "$options $words" -- "$current"))
}
complete -o default -F _penstock_words penstock
[[ $funcstack[1] == _penstock ]] && _bash_complete -o default -F _penstock_words
return 0
