#!/usr/bin/env bash
# usage: tools/deb_test.sh [BUILD-FOLDER]
# Makes the Debian packages, installs the command's in a bare root of this machine's Debian (debootstrap,
# in a temporary folder), and runs the quickstart there on every backend that the build has. Needs root,
# a mirror of Debian and some minutes; ends with 77 where the first or debootstrap is missing.
set -euo pipefail

cd "$(dirname "$0")/.."
. tools/setup.sh

if [ "$(id -u)" -ne 0 ] || ! command -v debootstrap >/dev/null; then
  echo "SKIPPED: needs root and debootstrap"
  exit 77
fi
build=${1:-build}
[ $# -gt 0 ] || build_gradsync release
mirror=${GRADSYNC_DEBIAN_MIRROR:-http://deb.debian.org/debian}
suite=$(. /etc/os-release && echo "$VERSION_CODENAME")

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root

say "packages"
cpack -G DEB --config "$build/CPackConfig.cmake" -B "$work" >/dev/null
for package in "$work"/*.deb; do
  echo "$(basename "$package"): $(dpkg-deb -f "$package" Depends)"
done

say "a bare Debian ($suite)"
debootstrap --variant=minbase "$suite" "$root" "$mirror" >"$work/debootstrap.log" 2>&1 ||
  { tail -20 "$work/debootstrap.log" >&2; die "debootstrap failed"; }
cp "$work"/*.deb "$root/tmp/"

# The mounts end with the command.
inside() {
  # shellcheck disable=SC2016  # for the inner shell to expand
  unshare --mount --pid --fork sh -c 'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"' "$root" \
    env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root DEBIAN_FRONTEND=noninteractive "$@"
}

say "install"
inside sh -c 'apt-get update -qq && apt-get install -qq --no-install-recommends /tmp/gradsync_*.deb' \
  >"$work/apt.log" 2>&1 || { tail -20 "$work/apt.log" >&2; die "the package does not install"; }
# What a program is compiled with can be had too.
inside sh -c 'apt-get install -qq --simulate --no-install-recommends /tmp/gradsync-dev_*.deb' >/dev/null

say "run"
cd "$root"  # what is relative to the source tree must not be found
runs=()
for backend in gloo sim; do
  inside gradsync backends | grep -q "^$backend *yes" || continue
  inside gradsync run quickstart --backend "$backend" --ranks 2 --out "/tmp/$backend" | tail -n +2
  runs+=("/tmp/$backend")
done
[ "${#runs[@]}" -gt 0 ] || die "the package has no backend to run on"
[ "${#runs[@]}" -eq 1 ] || inside gradsync compare "${runs[@]}"
for file in man/man1/gradsync.1 bash-completion/completions/gradsync zsh/vendor-completions/_gradsync; do
  # Minimal images of Debian leave manual pages out (dpkg's path-exclude); debootstrap's root does not.
  [ -s "$root/usr/share/$file" ] || die "/usr/share/$file is missing"
done
say "the package works"
