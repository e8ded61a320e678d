"""`rewind completion`: shell completion.

click answers what is asked, and has the script for zsh. Those for bash and fish are ours: click's
insert a label as it is, so that a space in it ends the word and a `$(…)` in it would be run.
"""

from __future__ import annotations

import click

from coderewind.cli.app import App, command

_BASH = r"""_rewind_completion() {
    local type value words word=${COMP_WORDS[COMP_CWORD]}
    words=$(IFS=$'\n'; printf %s "${COMP_WORDS[*]}")
    COMPREPLY=()
    while IFS=, read -r type value; do
        case $type in
            dir) compopt -o dirnames ;;
            file) compopt -o default ;;
            plain)
                case $word in
                    \'*) value=${value//\'/\'\\\'\'} ;;
                    \"*) case $value in *[\\\"\$\`!]*) continue ;; esac ;;
                    *) printf -v value %q "$value" ;;
                esac
                COMPREPLY+=("$value") ;;
        esac
    done < <(env COMP_WORDS="$words" COMP_CWORD="$COMP_CWORD" _REWIND_COMPLETE=bash_complete \
        "${1/#~\//$HOME/}" 2>/dev/null)
}
complete -o nosort -F _rewind_completion rewind coderewind
"""

_FISH = r"""function _rewind_completion
    for line in (env _REWIND_COMPLETE=fish_complete COMP_WORDS=(commandline -cp) \
            COMP_CWORD=(commandline -t) rewind 2>/dev/null)
        set -l item (string split -m 1 , -- $line)
        switch $item[1]
            case dir
                __fish_complete_directories $item[2]
            case file
                __fish_complete_path $item[2]
            case plain
                printf '%s\n' $item[2]
        end
    end
end
complete --no-files --command rewind --arguments "(_rewind_completion)"
complete --no-files --command coderewind --wraps rewind
"""

_ZSH_TOO = "compdef _rewind_completion coderewind\n"


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@command
def completion(app: App, *, shell: str) -> None:
    """Print the completion script of a shell.

    \b
    bash: in ~/.bashrc  eval "$(rewind completion bash)"
    zsh:  in ~/.zshrc   eval "$(rewind completion zsh)"
    fish: in ~/.config/fish/config.fish  rewind completion fish | source
    """
    script = {"bash": _BASH, "fish": _FISH}.get(shell) or _zsh()
    app.out({"shell": shell, "script": script}, lambda: click.echo(script, nl=False))


def _zsh() -> str:
    from click.shell_completion import ZshComplete

    from coderewind.cli.top import rewind

    return ZshComplete(rewind, {}, "rewind", "_REWIND_COMPLETE").source() + _ZSH_TOO
