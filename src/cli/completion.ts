// millrace completion: prints a script that completes commands and options in bash, zsh or fish. It is generated from
// the tree of commands, so it knows all of them.

import { Argument, Command } from 'commander';
import { shellQuote } from '#lib/text/shell-quote.ts';

interface Choice {
  readonly word: string;
  readonly description: string;
}

/** What may follow a command. */
interface Place {
  /** Words of the command, such as `keys create`; empty for the program itself. */
  readonly path: string;
  readonly choices: readonly Choice[];
}

const install = `
Install it for new shells:
  bash  millrace completion bash > ~/.local/share/bash-completion/completions/millrace
  zsh   echo 'source <(millrace completion zsh)' >> ~/.zshrc
  fish  millrace completion fish > ~/.config/fish/completions/millrace.fish`;

export function completionCommand(): Command {
  const shell = new Argument('<shell>', 'Shell').choices(Object.keys(scripts));
  return new Command('completion')
    .description('Print a script that completes commands and options in your shell')
    .addArgument(shell)
    .addHelpText('after', install)
    .action((name: keyof typeof scripts, _options: object, command: Command) => {
      process.stdout.write(scripts[name](listPlaces(command.parent as Command, [])));
    });
}

/** `program` is undefined for the program itself. Its --context is an option of every command. */
function listPlaces(command: Command, path: readonly string[], program?: Command): Place[] {
  const commands = command.commands.map((child) => ({
    word: child.name(),
    description: child.description(),
  }));
  const everywhere = (program ?? command).options.filter(({ long }) => long === '--context');
  const own = program === undefined ? command.options : [...command.options, ...everywhere];
  const options = own.map(({ long, description }) => ({
    word: long ?? '',
    description,
  }));
  const help = { word: '--help', description: 'Show this help' };
  return [
    { path: path.join(' '), choices: [...commands, ...options, help] },
    ...command.commands.flatMap((child) =>
      listPlaces(child, [...path, child.name()], program ?? command),
    ),
  ];
}

/** Patterns of `path word` for every word that is a command there. */
const toSteps = (places: readonly Place[]) =>
  places
    .filter(({ path }) => path !== '')
    .map(({ path }) => shellQuote(path.includes(' ') ? path : ` ${path}`));

const toBash = (places: readonly Place[]) => `_millrace() {
  local at='' words='' i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$at \${COMP_WORDS[i]}" in
      ${toSteps(places).join(' | ')}) at="\${at:+$at }\${COMP_WORDS[i]}" ;;
    esac
  done
  case "$at" in
${places.map(({ path, choices }) => `    ${shellQuote(path)}) words='${choices.map(({ word }) => word).join(' ')}' ;;`).join('\n')}
  esac
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _millrace millrace
`;

const toZsh = (places: readonly Place[]) => `#compdef millrace
_millrace() {
  local at='' i
  local -a choices
  for ((i = 2; i < CURRENT; i++)); do
    case "$at \${words[i]}" in
      ${toSteps(places).join(' | ')}) at="\${at:+$at }\${words[i]}" ;;
    esac
  done
  case "$at" in
${places.map(({ path, choices }) => `    ${shellQuote(path)}) choices=(${choices.map(toDescribed).join(' ')}) ;;`).join('\n')}
  esac
  _describe 'millrace' choices || _files
}
compdef _millrace millrace
`;

/** zsh separates the word from its description by a colon. */
const toDescribed = ({ word, description }: Choice) =>
  shellQuote(`${word}:${description.replaceAll(':', '\\:')}`);

const toFish = (places: readonly Place[]) => `function __millrace_at
  set -l at ''
  for word in (commandline -opc)[2..]
    switch "$at $word"
      case ${toSteps(places).join(' ')}
        set at (string trim "$at $word")
    end
  end
  test "$at" = "$argv[1]"
end
${places.flatMap(({ path, choices }) => choices.map((choice) => toFishLine(path, choice))).join('\n')}
`;

function toFishLine(path: string, { word, description }: Choice): string {
  const what = word.startsWith('--') ? `-l ${word.slice(2)}` : `-f -a ${word}`;
  const text = description.replaceAll('\\', '\\\\').replaceAll("'", "\\'");
  return `complete -c millrace -n '__millrace_at "${path}"' ${what} -d '${text}'`;
}

const scripts = { bash: toBash, zsh: toZsh, fish: toFish };
