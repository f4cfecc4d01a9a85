# What the scripts of this folder share: sourced, never run.
#
# Each script keeps all that it makes below the DIR it is given: state, logs, images, mounts. So two of a
# kind can live beside each other, and `stop DIR` ends what `start DIR` began and nothing else.

readonly me=${0##*/}

say() { printf '%s: %s\n' "$me" "$*"; }
stop_with() {
  local code=$1
  shift
  printf "$me: %s\n" "$@" >&2
  exit "$code"
}

# Prints the comment that heads the script, which is its manual.
usage() {
  awk 'NR > 1 && !/^#/ { exit } NR > 1 { sub(/^# ?/, ""); print }' "$0" >&2
  exit 2
}

# Wrong words are 2; what this machine cannot do is 77, which suites count as a skip.
readonly wrong_usage=2 not_here=77

needs_root() {
  [ "$(id -u)" = 0 ] || stop_with $not_here "only root can $1; run it as root"
}

# needs PROGRAM PACKAGE: daemons lie in sbin, which users do not always have on their path.
PATH=$PATH:/usr/sbin:/sbin
needs() {
  command -v "$1" >/dev/null || stop_with $not_here "no $1 on this machine; on Debian: apt-get install $2"
}

# bytes 40MiB -> 41943040, bytes 40MB -> 40000000, bytes 17 -> 17
bytes() {
  local number
  number=$(numfmt --from=auto --suffix=B "$1" 2>/dev/null) ||
    stop_with $wrong_usage "$2 must be bytes, as 40MiB, 40MB or 41943040, got '$1'"
  printf '%s\n' "${number%B}"
}

# wait_for SECONDS COMMAND..: true as soon as the command is.
wait_for() {
  local deadline=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    [ "$SECONDS" -lt "$deadline" ] || return 1
    sleep 0.1
  done
}

pid_of() { tr -dc 0-9 2>/dev/null <"$1" || true; }
# A zombie is dead, though some first processes take their time to bury it.
is_alive() { [ -n "$1" ] && grep -q '^State:[[:space:]][^ZX]' "/proc/$1/status" 2>/dev/null; }

# is_running PIDFILE NAME: a number that was handed to another program since is not ours.
is_running() {
  local pid
  pid=$(pid_of "$1")
  is_alive "$pid" && [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = "$2" ]
}

# end PIDFILE NAME: asks, waits, insists.
end() {
  local pid
  pid=$(pid_of "$1")
  if is_running "$1" "$2"; then
    kill "$pid" 2>/dev/null || true
    gone() { ! is_alive "$pid"; }
    wait_for 10 gone || kill -9 "$pid" 2>/dev/null || true
  fi
  rm -f "$1"
}

# end_namespace NAME: kills what runs in a network namespace, and removes it.
end_namespace() {
  local name=$1 pids
  pids=$(ip netns pids "$name" 2>/dev/null || true)
  # shellcheck disable=SC2086  # a list of numbers; only ours are in there
  [ -z "$pids" ] || kill -9 $pids 2>/dev/null || true
  empty() { [ -z "$(ip netns pids "$name" 2>/dev/null)" ]; }
  wait_for 10 empty || true
  ip netns del "$name" 2>/dev/null || true
}

# A mount that is in use is waited for: what was just killed may still hold it.
unmount() {
  mountpoint -q "$1" || return 0
  wait_for 5 umount "$1" || {
    umount "$1" || stop_with 1 "$1 is in use and stays mounted; end what uses it (fuser -vm $1) and stop again"
  }
}

# bring WHAT PACKAGE..: what is missing of Debian's packages is installed where PENSTOCK_INSTALL=yes asks for it;
# otherwise the one command that brings it is said.
bring() {
  local what=$1 package missing=()
  shift
  command -v dpkg-query >/dev/null || return 0
  for package in "$@"; do
    dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
  done
  [ ${#missing[@]} != 0 ] || return 0
  [ "${PENSTOCK_INSTALL:-}" = yes ] || stop_with $not_here "$what: packages are missing: ${missing[*]}" \
    "PENSTOCK_INSTALL=yes installs them, or: apt-get install -y --no-install-recommends ${missing[*]}"
  say "installing ${missing[*]}" >&2
  install_packages "${missing[@]}" || stop_with $not_here "$what: apt-get could not install ${missing[*]}"
}

# No package starts a service of its own meanwhile.
install_packages() {
  local policy=/usr/sbin/policy-rc.d rc=0
  if [ -e $policy ]; then policy=; else install -m 755 /dev/stdin $policy <<<$'#!/bin/sh\nexit 101'; fi
  { apt_get update && apt_get install -y --no-install-recommends "$@"; } || rc=$?
  [ -z "$policy" ] || rm -f "$policy"
  return $rc
}

apt_get() { DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 "$@" </dev/null >/dev/null; }
