#!/bin/sh
# Install Rewind for this user: a private environment, and two links in ~/.local/bin.
# Running it again upgrades. Nothing needs root, and nothing outside the places named is touched but
# the settings of the agents that you let it connect.
set -eu

usage() {
    cat <<'END'
usage: ./install.sh [--yes] [--mcp] [--init DIR]    install or upgrade Rewind for this user
       ./install.sh --uninstall [--yes]             remove what was installed

  --yes         do not ask: connect every agent that is found, in the tier that is set (exact)
  --init DIR    then protect DIR: make its store and take the first checkpoint
  --mcp         with what `rewind mcp` needs, some thirty packages; upgrades keep it
  --uninstall   remove the program and its links; checkpoints go only on your word,
                never by --yes

REWIND_HOME (default ~/.rewind) is where the program and the checkpoints go.
PYTHON names the Python to use, 3.11 or newer.
END
}

say() { printf '%s\n' "$*"; }

short() { # a path with ~ for the home folder
    case $1 in "$HOME"/*) printf '~%s' "${1#"$HOME"}" ;; *) printf '%s' "$1" ;; esac
}

fail() { # message, then lines of advice
    printf 'error: %s\n' "$1" >&2
    shift
    for line in "$@"; do printf '  %s\n' "$line" >&2; done
    exit 1
}

confirm() { # question; without a terminal the answer is no
    [ -t 0 ] || return 1
    printf '%s [y/N] ' "$1"
    read -r answer || return 1
    case $answer in y | Y | yes | Yes | YES) return 0 ;; *) return 1 ;; esac
}

yes=no action=install init="" mcp=no
while [ $# -gt 0 ]; do
    case $1 in
        --yes | -y) yes=yes ;;
        --uninstall) action=uninstall ;;
        --init) [ $# -ge 2 ] || { usage >&2; exit 2; }; init=$2; shift ;;
        --init=*) init=${1#--init=} ;;
        --mcp) mcp=yes ;;
        --help | -h) usage; exit 0 ;;
        *) printf 'error: %s is not known\n' "$1" >&2; usage >&2; exit 2 ;;
    esac
    shift
done
if [ "$action" = uninstall ] && [ -n "$init" ]; then
    printf 'error: give --init or --uninstall, not both\n' >&2
    exit 2
fi

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P)
if [ -z "${HOME:-}" ]; then
    HOME=$(cd ~ 2>/dev/null && pwd) || fail "HOME is not set" "set it to your home folder"
    export HOME
fi
rewind_home=${REWIND_HOME:-$HOME/.rewind}
case $rewind_home in /*) ;; *) rewind_home=$PWD/$rewind_home ;; esac
system=$rewind_home/system
placed=$system/placed-by-install.sh # one path a line: what lies outside of $system
bin=$HOME/.local/bin
names="rewind coderewind"

is_ours() { # a link of this installation
    [ -L "$1" ] && [ "$(readlink "$1")" = "$system/bin/$(basename "$1")" ]
}

# ---- install

check_links() {
    for name in $names; do
        link=$bin/$name
        if is_ours "$link" || { [ ! -e "$link" ] && [ ! -L "$link" ]; }; then continue; fi
        what="is another program"
        [ -L "$link" ] && what="leads to $(readlink "$link")"
        fail "$link exists already and $what; nothing was changed" \
            "move it away, or install elsewhere: python3 -m venv DIR && DIR/bin/pip install '$here'"
    done
}

check_bin() { # whether the links can be made
    folder=$bin
    while [ ! -e "$folder" ]; do folder=${folder%/*}; done
    if [ ! -d "$folder" ] || [ ! -w "$folder" ]; then
        fail "$folder is no folder that you may write to; nothing was changed" \
            "the commands are to be linked into $bin"
    fi
}

check_system() { # before it is built anew or removed
    if [ -e "$system" ] && [ ! -f "$system/pyvenv.cfg" ] && [ ! -d "$system.before" ]; then
        fail "$system is not what install.sh made; nothing was changed" "move it away"
    fi
}

check_git() {
    command -v git >/dev/null 2>&1 ||
        fail "git was not found; Rewind needs git 2.34 or newer" \
            "install it (for example: apt install git), then run this again"
    version=$(git --version | sed 's/[^0-9]*\([0-9][0-9.]*\).*/\1/')
    major=${version%%.*}
    minor=${version#*.}
    minor=${minor%%.*}
    if [ "$major" -lt 2 ] || { [ "$major" -eq 2 ] && [ "$minor" -lt 34 ]; }; then
        fail "git $version is too old; Rewind needs git 2.34 or newer"
    fi
}

works() { # whether the environment can run and be installed into
    "$system/bin/python" -I -c \
        'import pip, sys; sys.exit(0 if sys.version_info >= (3, 11) else 1)' >/dev/null 2>&1
}

pip_install() {
    # A user's own pip settings choose the index, but never another place to install to.
    unset PIP_TARGET PIP_PREFIX PIP_ROOT PIP_EDITABLE PIP_CONSTRAINT PYTHONPATH PYTHONHOME
    what=.
    if [ "$mcp" = yes ]; then what=".[mcp]"; fi
    (cd -- "$here" && PIP_USER=0 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1 \
        "$system/bin/python" -I -m pip install --quiet --upgrade "$what")
}

put_back() { # a new environment that was not finished goes; the old one comes back
    if [ -n "$made" ]; then rm -rf -- "$system"; fi
    if [ -n "$made" ] && [ -d "$system.before" ]; then mv -- "$system.before" "$system"; fi
    rm -f -- "$log"
}

has_mcp() { # whether the environment that stands has what `rewind mcp` needs
    "$system/bin/python" -I -c \
        'import importlib.util, sys; sys.exit(importlib.util.find_spec("mcp") is None)' >/dev/null 2>&1
}

build() {
    made=""
    if has_mcp; then mcp=yes; fi
    log=$rewind_home/install.log
    trap 'put_back; exit 130' INT TERM HUP
    if ! works; then
        if [ -d "$system.before" ]; then # an installation that was killed
            rm -rf -- "$system"
        elif [ -d "$system" ]; then
            mv -- "$system" "$system.before"
        fi
        made=yes
        "$python" -I -m venv "$system" >"$log" 2>&1 || gave_up "the private environment could not be made"
    fi
    pip_install >"$log" 2>&1 || gave_up "pip could not install Rewind"
    if [ -f "$system.before/${placed##*/}" ]; then mv -- "$system.before/${placed##*/}" "$placed"; fi
    rm -rf -- "$system.before"
    rm -f -- "$log"
    trap - INT TERM HUP
}

gave_up() {
    printf 'error: %s; it said:\n' "$1" >&2
    grep -v '^ *$' "$log" | tail -n 6 | sed 's/^/  | /' >&2
    put_back
    fail "nothing was installed or changed" \
        "pip fetches packages from its index: is it reachable from here?"
}

was_placed() { grep -qxF -- "$1" "$placed" 2>/dev/null; }

link_commands() {
    : >"$placed.new"
    for folder in "$bin" "${bin%/*}"; do
        if [ ! -d "$folder" ] || was_placed "$folder"; then printf '%s\n' "$folder" >>"$placed.new"; fi
    done
    mkdir -p -- "$bin" || fail "$bin could not be made"
    for name in $names; do
        ln -sf -- "$system/bin/$name" "$bin/$name" || fail "$bin/$name could not be made"
        printf '%s\n' "$bin/$name" >>"$placed.new"
    done
    mv -- "$placed.new" "$placed"
}

say_path() {
    case :${PATH:-}: in
        *":$bin:"* | *":$bin/:"*)
            first=$(command -v rewind || true)
            if [ "$first" = "$bin/rewind" ]; then
                say "  PATH       has $(short "$bin"): type rewind"
            else
                say "  PATH       has $(short "$bin"), but another rewind comes first ($first): type coderewind"
            fi
            ;;
        *)
            say "  PATH       does not have $(short "$bin") yet; add this to your shell's profile:"
            say "               export PATH=\"\$HOME/.local/bin:\$PATH\""
            ;;
    esac
}

install() {
    [ -f "$here/pyproject.toml" ] || fail "$here is not a checkout of Rewind" \
        "run the install.sh inside one"
    if [ -n "$init" ] && [ ! -d "$init" ]; then fail "there is no folder $init to protect"; fi
    python=$("$here/scripts/find-python" ./install.sh) || exit 1
    check_git
    check_links
    check_bin
    check_system
    before=""
    if works; then before=$("$system/bin/coderewind" --version 2>/dev/null || true); fi
    if [ "$yes" = no ]; then
        say "This installs Rewind into $(short "$system") and links rewind and coderewind"
        say "into $(short "$bin"). Then it asks about each agent that it finds; nothing else is touched."
        if [ ! -t 0 ]; then fail "there is no terminal to ask on; nothing was changed" "add --yes"; fi
        confirm "Go on?" || fail "nothing was changed"
    fi
    (umask 077 && mkdir -p -- "$rewind_home") || fail "$rewind_home could not be made"
    build
    link_commands
    now=$("$system/bin/coderewind" --version) || fail "the installed program does not start" \
        "rm -rf '$system', then run this again"
    case $before in
        "") say "Installed: $now." ;;
        "$now") say "Installed again: $now." ;;
        *) say "Upgraded: $before is now $now." ;;
    esac
    say "  program    $(short "$system") ($("$system/bin/python" -V))"
    say "  commands   $(short "$bin/rewind") and $(short "$bin/coderewind"), two names for it"
    say_path
    if [ -n "${REWIND_HOME:-}" ]; then
        say "  home       REWIND_HOME is set: rewind finds these checkpoints only where it is set, too"
    fi
    connect
    if [ -n "$init" ]; then
        say ""
        if [ "$yes" = yes ]; then set -- --yes; else set --; fi
        "$system/bin/rewind" -C "$init" init "$@"
    else
        say "  next       in a project: rewind init"
    fi
}

connect() { # the agents that are found; without --yes each is asked about, and so is the tier
    say ""
    if [ "$yes" = yes ]; then set -- --agents all --yes; else set --; fi
    (cd -- "$HOME" && "$system/bin/rewind" config --register-hooks "$@") ||
        say "  agents     rewind config --register-hooks tries that again"
}

# ---- uninstall

uninstall() {
    if [ ! -d "$system" ] && [ ! -L "$bin/rewind" ]; then
        say "Rewind is not installed in $(short "$system"): nothing to remove."
    else
        check_system
        if [ "$yes" = no ] && ! confirm "Remove $(short "$system") and its links in $(short "$bin")?"; then
            [ -t 0 ] || fail "there is no terminal to ask on; nothing was changed" "add --yes"
            fail "nothing was changed"
        fi
        remove_program
    fi
    [ -d "$rewind_home/storage" ] || { rmdir -- "$rewind_home" 2>/dev/null || true; exit 0; }
    count=$(find "$rewind_home/storage" -mindepth 1 -maxdepth 1 -type d | wc -l | tr -d ' ')
    say "The checkpoints of protected folders ($count) are in $(short "$rewind_home/storage")."
    if confirm "Delete them and your settings, for ever?"; then
        rm -rf -- "$rewind_home/storage" "$rewind_home/reports" "$rewind_home/config.json"
        rmdir -- "$rewind_home" 2>/dev/null || true
        say "Deleted. Stores made with --mode project or repo stay where they are, in those folders."
    else
        say "They stay; installing Rewind again finds them."
    fi
}

remove_program() {
    if [ -x "$system/bin/rewind" ]; then # agents must not call what is gone
        (cd -- "$HOME" && "$system/bin/rewind" config --unregister-hooks) | grep -v 'was not connected' || true
    fi
    for trace in agents sessions plugins hook.log hook.log.1; do rm -rf -- "${rewind_home:?}/$trace"; done
    for name in $names; do
        if is_ours "$bin/$name"; then rm -f -- "$bin/$name" && say "removed $(short "$bin/$name")"; fi
    done
    for folder in "$bin" "${bin%/*}"; do
        if was_placed "$folder" && rmdir -- "$folder" 2>/dev/null; then say "removed $(short "$folder")"; fi
    done
    if [ -d "$system" ]; then
        rm -rf -- "$system" "$system.before"
        say "removed $(short "$system")"
    fi
}

$action
