#!/usr/bin/env bash
# Installs the programs that the tests need and npm does not provide: git, flock, make, tmux, ps, python3, ssh-keygen.
# Does nothing if all are installed. If it cannot install, it names the missing ones and fails. As root it also tries to
# install chromium, nvim, zsh, fish and PostgreSQL with apt-get; a test without its program is skipped.

set -euo pipefail

# program : Debian package : Homebrew formula
readonly NEEDED=(
  git:git:git
  flock:util-linux:flock
  make:make:make
  tmux:tmux:tmux
  ps:procps:-
  python3:python3:python3
  ssh-keygen:openssh-client:openssh
)

missing_programs=()
missing_packages=()
missing_formulas=()

look() {
  missing_programs=()
  missing_packages=()
  missing_formulas=()
  local entry program package formula
  for entry in "${NEEDED[@]}"; do
    IFS=: read -r program package formula <<<"$entry"
    command -v "$program" >/dev/null && continue
    missing_programs+=("$program")
    missing_packages+=("$package")
    if [ "$formula" != - ]; then missing_formulas+=("$formula"); fi
  done
}

give_up() {
  echo "setup: missing: ${missing_programs[*]}" >&2
  echo "setup: $1" >&2
  exit 1
}

# program : Debian package
readonly OPTIONAL=(chromium:chromium nvim:neovim zsh:zsh fish:fish initdb:postgresql)

# Debian keeps the programs of PostgreSQL out of PATH.
is_there() {
  command -v "$1" >/dev/null || compgen -G "/usr/lib/postgresql/*/bin/$1" >/dev/null
}

try_optional() {
  local entry program package has_lists=false
  for entry in "${OPTIONAL[@]}"; do
    IFS=: read -r program package <<<"$entry"
    is_there "$program" && continue
    if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
      # A fresh machine has no lists of packages.
      if [ "$has_lists" = false ]; then timeout 120 apt-get update -qq >/dev/null 2>&1 || true; fi
      has_lists=true
      DEBIAN_FRONTEND=noninteractive timeout 300 \
        apt-get install -y -qq --no-install-recommends "$package" >/dev/null 2>&1 || true
    fi
    is_there "$program" || echo "setup: $program is not installed; the tests with it are skipped"
  done
}

look
if [ ${#missing_programs[@]} -eq 0 ]; then
  try_optional
  echo 'setup: everything is installed'
  exit 0
fi

if [ "$(uname)" = Darwin ]; then
  give_up "try: brew install ${missing_formulas[*]-}"
fi
if ! command -v apt-get >/dev/null; then
  give_up "install them with your system's package manager (on Debian: ${missing_packages[*]})"
fi

if [ "$(id -u)" -eq 0 ]; then
  as_root=(env)
elif command -v sudo >/dev/null; then
  as_root=(sudo)
else
  give_up "as root, run: apt-get install ${missing_packages[*]}"
fi

echo "setup: installing ${missing_packages[*]}"
if ! { "${as_root[@]}" apt-get update -qq &&
  "${as_root[@]}" DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing_packages[@]}"; } >&2; then
  give_up "apt-get could not install ${missing_packages[*]}"
fi

look
if [ ${#missing_programs[@]} -gt 0 ]; then
  give_up 'still not found after installing their packages'
fi
try_optional
echo 'setup: done'
