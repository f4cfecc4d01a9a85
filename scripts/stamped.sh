# Sourced by scripts that make things once (get_libraries.sh, get_peers.sh): they set `program`, their
# own name, and `out`, and `program.sh --make NAME` makes NAME.
mkdir -p "$out/log"
failed=0

say() { printf '%s: %s\n' "$program" "$*"; }

# NAME STAMP: makes it unless the stamp is there already; what was printed is kept, and what the
# program said itself is said again. In a process of its own, because bash ignores errors inside a
# function whose result is looked at.
get() {
  local name=$1 stamp=$2
  if [ "$(cat "$out/$name.stamp" 2>/dev/null)" = "$stamp" ]; then return; fi
  say "$name"
  rm -f "$out/$name.stamp" # what is half made is not what it was
  if "scripts/$program.sh" --make "$name" >"$out/log/$name.log" 2>&1 </dev/null; then
    printf '%s' "$stamp" >"$out/$name.stamp"
    grep "^$program: " "$out/log/$name.log" || true
  else
    tail -n 15 "$out/log/$name.log" >&2
    say "$name failed (all of it in $out/log/$name.log)" >&2
    failed=1
  fi
}

# NAME, and the names that were asked for: whether it is one of them, or all are.
wanted() { [ $# -eq 1 ] || printf '%s\n' "${@:2}" | grep -qx -- "$1"; }
