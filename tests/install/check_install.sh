#!/usr/bin/env bash
# usage: check_install.sh CMAKE BUILD-FOLDER SOURCE-FOLDER PREFIX
# Installs a build into PREFIX (emptied first), and fails where what is there names the folders that it
# comes from, where the command does not find what was installed with it, or where a header includes one that is not there: neither the project's internal ones nor
# those of libraries that a program need not have.
set -euo pipefail

cmake=$1 build=$2 source=$3 prefix=$4
status=0
fail() {
  printf '%s\n' "$@" >&2
  status=1
}

rm -rf "$prefix"
"$cmake" --install "$build" --prefix "$prefix" >/dev/null

# Text only: debug information names the sources.
if named=$(grep -rIlF -e "$source" -e "$build" "$prefix"); then
  fail "these files name the source or the build folder:" "$named"
fi

# What ships is found from the program's own folder, by its name.
if [ -x "$prefix/bin/gradsync" ]; then
  said=$(cd / && "$prefix/bin/gradsync" run quickstart --set no.such.key=1 2>&1) || true
  case $said in
    *"$prefix/share/gradsync/scenarios/quickstart.json"*) ;;
    *) fail "the installed command does not find its scenarios: $said" ;;
  esac
  for file in gradsync/scenarios/schema/scenario.schema.json man/man1/gradsync.1 \
    bash-completion/completions/gradsync zsh/site-functions/_gradsync \
    fish/vendor_completions.d/gradsync.fish; do
    [ -s "$prefix/share/$file" ] || fail "share/$file was not installed"
  done
fi

# The standard library's headers have no dot and no slash; POSIX's are few. JSON is part of the
# testbed's interface.
allowed='^([a-z_]+|nlohmann/json(_fwd)?\.hpp|unistd\.h|immintrin\.h)$'
cd "$prefix/include"
while IFS= read -r -d '' header; do
  while read -r included; do
    case $included in
      gradsync/*) [ -f "$included" ] || fail "$header includes $included, which is not installed" ;;
      *) [[ $included =~ $allowed ]] || fail "$header includes <$included>" ;;
    esac
  done < <(sed -nE 's/^ *# *include *[<"]([^>"]+)[>"].*/\1/p' "$header")
done < <(find gradsync -type f -print0)
[ -n "$(find gradsync -name reducer.hpp)" ] || fail "no header was installed"
exit $status
