# shellcheck shell=bash
# What run.sh and test.sh share: sourced by them, does nothing by itself.
#
#   require_packages                 the Debian packages of the build, installed where that is allowed
#   build_gradsync PRESET [TARGET]   configures and builds a preset of CMakePresets.json
#
# Bash, coreutils and dpkg are all that it needs to start with.

# The build's packages, by their names in Debian 12 and 13 (docs/dependencies.md says what each is for).
gradsync_packages=(
  g++ cmake ninja-build pkg-config
  libgloo-dev libsimgrid-dev libopenblas-dev
  nlohmann-json3-dev libcli11-dev libfmt-dev libxxhash-dev libasio-dev libjemalloc-dev
  libnlopt-cxx-dev libboost-dev
  catch2 libbenchmark-dev
)

# Options for CMake beside the preset's.
gradsync_cmake_options=()

say() { printf '== %s\n' "$*"; }
die() {
  printf '%s: %s\n' "$(basename "$0")" "$*" >&2
  exit 1
}

missing_packages() {
  local package
  for package in "${gradsync_packages[@]}"; do
    dpkg-query -W -f='${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed ||
      printf '%s\n' "$package"
  done
}

# apt-get as root: we are root, or sudo lets us without asking for a password.
apt_get() {
  if [ "$(id -u)" -eq 0 ]; then
    DEBIAN_FRONTEND=noninteractive apt-get "$@"
  else
    sudo -n env DEBIAN_FRONTEND=noninteractive apt-get "$@"
  fi
}

require_packages() {
  if [ -n "${GRADSYNC_SKIP_PACKAGES:-}" ]; then
    say "not looking for packages (GRADSYNC_SKIP_PACKAGES is set); CMake will say what it misses"
    return
  fi
  command -v dpkg-query >/dev/null ||
    die "this is not a Debian system. Install what docs/dependencies.md lists, then run this again" \
      "with GRADSYNC_SKIP_PACKAGES=1."
  local missing
  mapfile -t missing < <(missing_packages)
  [ "${#missing[@]}" -gt 0 ] || return 0
  local by_hand="apt-get update && apt-get install --no-install-recommends ${missing[*]}"
  if [ "$(id -u)" -ne 0 ] && ! sudo -n true 2>/dev/null; then
    die "these packages are missing: ${missing[*]}
Only root may install them. Run this as root, then run $(basename "$0") again:

    $by_hand
"
  fi
  say "installing ${missing[*]}"
  { apt_get update -q && apt_get install -q -y --no-install-recommends "${missing[@]}"; } ||
    die "apt-get failed (its messages are above). By hand: $by_hand"
}

# As many compilers as processors and memory allow: the largest of them takes about 1 GiB.
build_jobs() {
  local processors memory_gib
  processors=$(nproc)
  memory_gib=$(awk '/^MemAvailable/ {print int($2 / 1048576)}' /proc/meminfo)
  if [ "$memory_gib" -lt 1 ]; then memory_gib=1; fi
  echo $((processors < memory_gib ? processors : memory_gib))
}

# build_gradsync PRESET [TARGET]: the caller's directory is the repository's root.
build_gradsync() {
  local jobs
  jobs=$(build_jobs)
  say "configuring (preset $1)"
  cmake --preset "$1" "${gradsync_cmake_options[@]}"
  say "building ${2:-everything} with $jobs jobs"
  cmake --build --preset "$1" --parallel "$jobs" --target "${2:-all}"
}
