#!/usr/bin/env bash
# The README's commands, and an installation as a user, on a Debian that has nothing yet: debootstrap
# into build/fresh, and a clean clone of HEAD. As root, since it changes its root directory.
#
#   scripts/check_fresh.sh [refused] [root] [user] [image]     default: all four
#
#   refused a user without rights, where nothing is installed yet: is told what is missing
#   root    the README's commands as written, as root (make demo installs what it needs)
#   user    a user without rights, where it is installed: sees the demo, builds, installs into the home
#           directory, deletes the build, runs programs, uninstalls
#   image   the sections of packaging/apptainer/penstock.def, each executed as Apptainer would
#
# Packages come from where this machine's own come from. Everything runs in mount and process
# namespaces of its own: whatever happens, nothing stays mounted and nothing keeps running. Logs are
# build/fresh/STEP.log; the last line is "N passed, N failed, N skipped".
set -euo pipefail
cd "$(dirname "$0")/.."

readonly suite=bookworm top=$PWD
readonly work=$top/build/fresh
readonly rootfs=$work/root
passed=0 failed=0 has_git=no has_all=no

stop() {
  printf 'check-fresh: %s\n' "$@" >&2
  exit 1
}

[ "$(id -u)" = 0 ] || stop "needs root: it makes a root directory with debootstrap and enters it"
command -v debootstrap >/dev/null || stop "debootstrap is not there: apt-get install debootstrap"
if [ -z "${PENSTOCK_TEST_NAMESPACE:-}" ]; then
  PENSTOCK_TEST_NAMESPACE=yes exec unshare --mount --pid --fork --kill-child "$0" "$@"
fi
unset PENSTOCK_TEST_NAMESPACE
mount --make-rprivate /

# ---- the machine's own way to packages ----

mirror() {
  apt-get indextargets --format '$(SITE)' 'Created-By: Packages' | head -n 1
}

make_base() {
  [ -f "$work/base.tar" ] && return
  local site
  site=$(mirror)
  [ -n "$site" ] || stop "apt-get names no mirror: add Debian's to this machine's sources"
  rm -rf "$rootfs"
  debootstrap --variant=minbase "$suite" "$rootfs" "$site" >"$work/debootstrap.log" 2>&1 ||
    stop "debootstrap failed; the whole story is in build/fresh/debootstrap.log"
  tar -C "$rootfs" -cf "$work/base.tar.part" .
  mv "$work/base.tar.part" "$work/base.tar"
}

# What this machine says about reaching the network holds inside too.
hand_in_network() {
  cp -L /etc/resolv.conf "$rootfs/etc/resolv.conf"
  # What Debian's installer writes and debootstrap does not: without it, every MPI program asks the
  # network for "localhost" and waits for seconds.
  printf '127.0.0.1 localhost %s\n::1 localhost ip6-localhost\n' "$(hostname)" >"$rootfs/etc/hosts"
  [ ! -e /etc/pip.conf ] || cp -L /etc/pip.conf "$rootfs/etc/pip.conf"
  env | grep -E '^(PIP_[A-Z_]*|[a-zA-Z]+_proxy|[A-Z]+_PROXY)=' | grep -vE '^PIP_(FIND_LINKS|CERT)=' |
    sed "s/'/'\\\\''/g; s/=\(.*\)/='\1'/; s/^/export /" >"$rootfs/etc/profile.d/network.sh" || true
  [ -e /etc/ssl/certs/ca-certificates.crt ] || return 0
  # Of a name of its own: installing ca-certificates inside would replace it.
  cp -L /etc/ssl/certs/ca-certificates.crt "$rootfs/etc/this-machine.crt"
  echo 'export PIP_CERT=/etc/this-machine.crt' >>"$rootfs/etc/profile.d/network.sh"
}

fresh_root() {
  ! mountpoint -q "$rootfs" || umount -R "$rootfs"
  rm -rf --one-file-system "$rootfs"
  has_git=no has_all=no
  mkdir -p "$rootfs" "$work/packages"
  mount --bind "$rootfs" "$rootfs" # so that one umount takes all that is mounted below
  tar -C "$rootfs" -xf "$work/base.tar"
  hand_in_network
  mount -t proc proc "$rootfs/proc"
  mount --rbind /dev "$rootfs/dev"
  mount -t tmpfs -o mode=1777 tmpfs "$rootfs/tmp"
  mount --bind "$work/packages" "$rootfs/var/cache/apt/archives"
  chroot "$rootfs" useradd --create-home --shell /bin/bash user
}

# as WHO COMMANDS: in the fresh root, with a login's environment and nothing of this shell's.
as() {
  local home=/root
  [ "$1" = root ] || home=/home/$1
  chroot --userspec="$1" "$rootfs" env -i HOME=$home USER="$1" LC_ALL=C.UTF-8 \
    PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 \
    bash -euo pipefail -c ". /etc/profile.d/network.sh; cd; $2" </dev/null
}

# step NAME COMMAND...: runs it with its own log and counts it.
step() {
  local name=$1 log=$work/${1//[^a-z0-9]/-}.log start=$SECONDS
  shift
  if "$@" >"$log" 2>&1; then
    passed=$((passed + 1))
    printf '%-52s ok     in %d s\n' "$name" $((SECONDS - start))
  else
    failed=$((failed + 1))
    printf '%-52s FAILED in %d s\n' "$name" $((SECONDS - start))
    tail -n 20 "$log" | sed 's/^/  /'
  fi
}

clone_for() {
  local home=/root
  [ "$1" = root ] || home=/home/$1
  rm -rf "$rootfs$home/penstock"
  git clone --quiet --no-hardlinks "$top" "$rootfs$home/penstock"
  [ "$1" = root ] || chroot "$rootfs" chown -R "$1:" "$home/penstock"
}

# The reader's own program: the tests' writer, whose bytes are known.
bring_program() {
  install -D -m 644 tests/install/writer.c "$rootfs$1/writer.c"
  chmod 755 "$rootfs$1"
}

readonly expect_bytes='cmp out.dat <(printf "a%.0s" {1..1000}; printf "b%.0s" {1..1000})'

# ---- the four ----

# `...` spans that begin with penstock in README.md's table of uses, as a reader would type them: with a
# program in place of the names that stand for one, and as many ranks as a small machine bears. 1 from
# doctor is an answer: something here wants mending.
readme_uses() {
  grep -E '^\| [A-Z][^|]* \| `' README.md | grep -oE '`[^`]*`' | tr -d '`' |
    grep -E '^(penstock|mpiexec|eval) ' |
    sed -E 's/-n 64/-n 2/; s/ -- \.\.\.$/ -- mpiexec -n 2 .\/app out.dat/; s/(\.\/app)$/\1 out.dat/' |
    sed -E 's/^(penstock doctor) DIR$/\1 . || [ $? = 1 ]/' |
    sed -E 's/^(penstock bench) DIR --matrix .*/\1 . --matrix sweep.toml --out AFTER/' |
    sed -E 's/^(penstock bench) DIR$/\1 ./; s/^penstock compare .*/penstock compare AFTER AFTER/' |
    sed -E 's/^(penstock reproduce) NAME$/\1/; s/^penstock report RESULTS$/penstock report AFTER --format md/'
}

# With what brings the sources, and nothing else.
bring_git() {
  [ $has_git = no ] || return 0
  fresh_root
  as root 'apt-get update -q && apt-get install -y -q --no-install-recommends git make ca-certificates' \
    >"$work/prepare.log" 2>&1 || stop "apt-get failed in the fresh root; see build/fresh/prepare.log"
  has_git=yes
}

check_refused() {
  [ $has_all = no ] || has_git=no # then it would be refused nothing
  bring_git
  clone_for user
  step "user: make demo names what root must install" as user 'cd penstock
    ! make demo >said 2>&1 && cat said && grep -q "sudo apt-get install -y .*libmpich-dev" said'
  as user 'rm -rf penstock'
}

check_root() {
  bring_git
  clone_for root
  bring_program /root/penstock/here
  step "root: make demo" as root 'cd penstock && make demo'
  has_all=yes
  local prepare='cd penstock/here && export PATH=~/penstock/.venv/bin:~/penstock/build/release/native:$PATH
    mpicc -o app writer.c && cp app your_app; rm -f out.dat
    printf "rounds = 5\n[defaults]\nmpi = \"none\"\n[[variant]]\nname = \"engine\"\n" >sweep.toml;'
  step "root: .venv/bin/penstock run" as root "$prepare mpiexec --version | head -n 1
    ~/penstock/.venv/bin/penstock run --require -- mpiexec -n 2 ./your_app out.dat && $expect_bytes"
  local use uses
  uses=$(readme_uses)
  [ "$(wc -l <<<"$uses")" -ge 10 ] || stop "the README's table of uses has only: $uses"
  while read -r use; do
    # The pattern stands for the log of one job.
    [ "${use#penstock log}" = "$use" ] ||
      use="rm -f penstock-*.json; penstock run -- mpiexec -n 2 ./app out.dat; $use"
    step "root: ${use##*; }" as root "$prepare $use"
  done <<<"$uses"
}

check_user() {
  bring_git
  if [ $has_all = no ]; then
    clone_for root
    step "root: scripts/bootstrap.sh build" as root 'cd penstock && scripts/bootstrap.sh build'
  fi
  clone_for user
  step "user: make demo" as user 'cd penstock && make demo'
  bring_program /home/user/app
  chroot "$rootfs" chown -R user: /home/user/app
  step "user: make install PREFIX=\$HOME/x" as user 'cd penstock && make install PREFIX=$HOME/x'
  as user 'rm -rf penstock'
  local run='export PATH=$HOME/x/bin:$PATH; cd app; rm -f out.dat;'
  local mpi
  for mpi in mpich openmpi; do
    step "user: the sources deleted, penstock run ($mpi)" as user "$run mpicc.$mpi -o app writer.c
      penstock run --require -- mpiexec.$mpi -n 2 ./app out.dat && $expect_bytes"
    step "user: the sources deleted, penstock-exec ($mpi)" as user "$run
      mpiexec.$mpi -n 2 penstock-exec --require ./app out.dat && $expect_bytes"
  done
  step "user: the prefix moved" as user "mv x y; export PATH=\$HOME/y/bin:\$PATH; cd app; rm -f out.dat
    penstock run --require -- mpiexec.openmpi -n 2 ./app out.dat && $expect_bytes; mv ~/y ~/x"
  step "user: uninstalled by rm -rf" as user 'rm -rf x .cache
    ! find / -xdev -user user -newer /home/user/app/writer.c ! -path "/home/user/app/*" ! -path "/home/user" \
      ! -path "/proc/*" ! -path "/tmp/*" 2>/dev/null | grep .'
}

# A section of the definition, without its indentation's meaning changed.
section() {
  awk -v want="%$1" '/^%/ {inside = ($1 == want); next} inside' packaging/apptainer/penstock.def
}

copy_files() {
  local from to
  section files | while read -r from to; do
    [ -z "$from" ] || install -D "$from" "$rootfs$to" || return 1
  done
}

check_image() {
  fresh_root
  step "image: make dist" scripts/dist.sh
  step "image: %files" copy_files
  step "image: %post" as root "$(section post)"
  step "image: %test" as user "$(section environment)
$(section test)"
  bring_program /home/user/app
  chroot "$rootfs" chown -R user: /home/user/app
  step "image: a program, with %environment" as user "$(section environment)
    cd app; mpicc.mpich -o app writer.c; mpiexec.mpich -n 2 penstock-exec --require ./app out.dat && $expect_bytes"
}

mkdir -p "$work"
make_base
for part in "${@:-refused root user image}"; do
  for one in $part; do
    case $one in
      refused | root | user | image) "check_$one" ;;
      *) stop "the parts are refused, root, user and image, got '$one'" ;;
    esac
  done
done
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" = 0 ]
