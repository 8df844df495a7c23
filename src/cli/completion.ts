import { CaissonError } from "../contract/error/error.ts";
import type { CommandDefinition, Completed, RunCommand } from "./command.ts";
import { optionsOf } from "./options/arguments.ts";
import { line, lines } from "./terminal/line.ts";

/** Returns the `completion` command for the table that contains it. */
export function completionOf(table: readonly CommandDefinition[]): RunCommand {
  return async (context, args) => {
    const kinds = args.option("words");
    if (kinds !== undefined) {
      const { completedWords } = await import("./completed-words.ts");
      await context.stdout.print((await completedWords(context.station, kinds)).map((word) => line`${word}`));
      return 0;
    }
    const [shell] = args.positionals;
    if (shell === undefined) throw new CaissonError("invalid", "completion: SHELL is missing", { hint: "Choose bash, zsh or fish." });
    await context.stdout.print(lines(completionScript(shell, table)));
    return 0;
  };
}

/** Returns a completion script, generated from the command table. Throws `invalid` for an unknown shell. */
export function completionScript(shell: string, table: readonly CommandDefinition[]): string {
  switch (shell) {
    case "bash":
      return bash(table);
    case "zsh":
      // zsh can run bash's completion functions after `bashcompinit`.
      return `#compdef caisson\nautoload -U +X bashcompinit && bashcompinit\n${bash(table)}`;
    case "fish":
      return fish(table);
    default:
      throw new CaissonError("invalid", `there is no completion script for ${JSON.stringify(shell)}`, {
        hint: "Choose bash, zsh or fish.",
      });
  }
}

const firstWords = (table: readonly CommandDefinition[]): string[] => [...new Set(table.map((command) => command.path[0] as string))];
const secondWords = (table: readonly CommandDefinition[], first: string): string[] =>
  table.filter((command) => command.path[0] === first && command.path.length === 2).map((command) => command.path[1] as string);

/**
 * Returns the kinds for all arguments of a command together. If some arguments are optional, we cannot know which one a
 * word belongs to.
 */
function completedBy(command: CommandDefinition): readonly Completed[] {
  return [...new Set(command.arguments.flatMap(({ completes = ["file"] }) => completes))];
}

/** The kinds that `caisson completion --words` completes, in its syntax. */
const kindsText = (completes: readonly Completed[]) => completes.filter((kind) => kind !== "file").join(",");

function bash(table: readonly CommandDefinition[]): string {
  const groups = firstWords(table).filter((first) => secondWords(table, first).length > 0);
  const options = table.map(
    (command) =>
      `    "${command.path.join(" ")}") options="${optionsOf(command)
        .map((option) => `--${option.name}`)
        .join(" ")}" ;;`,
  );
  const values = table.flatMap((command) =>
    optionsOf(command).flatMap((option) => {
      const path = command.path.join(" ");
      const typed = [`"${path} --${option.name}"`, ...(option.short === undefined ? [] : [`"${path} -${option.short}"`])].join("|");
      if (option.choices !== undefined) return [`    ${typed}) values="${option.choices.join(" ")}" ;;`];
      return option.completes === undefined ? [] : [`    ${typed}) kinds="${kindsText(option.completes)}" ;;`];
    }),
  );
  const words = table.flatMap((command) => {
    const kinds = kindsText(completedBy(command));
    return kinds === ""
      ? []
      : [`    "${command.path.join(" ")}") kinds="${kinds}"${completedBy(command).includes("file") ? "" : " files="} ;;`];
  });
  return `# Completion for caisson. Load it with: source <(caisson completion bash)
_caisson_words() { "\${COMP_WORDS[0]/#\\~/$HOME}" completion --words "$1" 2>/dev/null; }
_caisson() {
  local word="\${COMP_WORDS[COMP_CWORD]}" before="\${COMP_WORDS[COMP_CWORD-1]}" command="\${COMP_WORDS[1]}" options="" values="" kinds="" files="" index
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "${firstWords(table).join(" ")}" -- "$word"))
    return
  fi
  case "$command" in
${groups.map((group) => `    ${group})\n      if [ "$COMP_CWORD" -eq 2 ]; then COMPREPLY=($(compgen -W "${secondWords(table, group).join(" ")}" -- "$word")); return; fi\n      command="$command \${COMP_WORDS[2]}" ;;`).join("\n")}
    completion)
      COMPREPLY=($(compgen -W "bash zsh fish" -- "$word"))
      return ;;
  esac
  for ((index = 2; index < COMP_CWORD; index++)); do
    if [ "\${COMP_WORDS[index]}" = "--" ]; then
      COMPREPLY=($(compgen -c -- "$word"))
      return
    fi
  done
  case "$command $before" in
${values.join("\n")}
  esac
  if [ -n "$kinds" ]; then values="$(_caisson_words "$kinds")"; fi
  if [ -n "$values$kinds" ]; then
    COMPREPLY=($(compgen -W "$values" -- "$word"))
    return
  fi
  case "$command" in
${options.join("\n")}
  esac
  case "$word" in
    -*)
      COMPREPLY=($(compgen -W "$options" -- "$word"))
      return ;;
  esac
  files=yes
  case "$command" in
${words.join("\n")}
  esac
  if [ -n "$kinds" ]; then COMPREPLY=($(compgen -W "$(_caisson_words "$kinds")" -- "$word")); fi
  if [ -n "$files" ]; then COMPREPLY+=($(compgen -f -- "$word")); fi
}
complete -F _caisson caisson
`;
}

function fish(table: readonly CommandDefinition[]): string {
  const quote = (text: string) => `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
  const lines = ["# Completion for caisson. Load it with: caisson completion fish | source"];
  const firsts = firstWords(table);
  for (const first of firsts) {
    const seconds = secondWords(table, first);
    const summary = table.find((command) => command.path.length === 1 && command.path[0] === first)?.summary ?? `${seconds.join(", ")}`;
    lines.push(`complete -c caisson -n "not __fish_seen_subcommand_from ${firsts.join(" ")}" -f -a ${first} -d ${quote(summary)}`);
    for (const command of table.filter((each) => each.path[0] === first && each.path.length === 2)) {
      const seen = `__fish_seen_subcommand_from ${first}; and not __fish_seen_subcommand_from ${seconds.join(" ")}`;
      lines.push(`complete -c caisson -n "${seen}" -f -a ${command.path[1]} -d ${quote(command.summary)}`);
    }
  }
  for (const command of table) {
    const seen = command.path.map((word) => `__fish_seen_subcommand_from ${word}`).join("; and ");
    for (const option of optionsOf(command)) {
      const short = option.short === undefined ? "" : ` -s ${option.short}`;
      const offered = option.choices?.join(" ") ?? (option.completes && fishWords(option.completes));
      const value =
        option.value === undefined || option.isValue !== undefined ? "" : offered === undefined ? " -r" : ` -x -a ${quote(offered)}`;
      lines.push(`complete -c caisson -n "${seen}" -l ${option.name}${short}${value} -d ${quote(option.summary)}`);
    }
  }
  for (const command of table) {
    const completes = completedBy(command);
    if (kindsText(completes) === "") continue;
    const seen = command.path.map((word) => `__fish_seen_subcommand_from ${word}`).join("; and ");
    const files = completes.includes("file") ? "" : " -f";
    lines.push(`complete -c caisson -n "${seen}"${files} -a ${quote(fishWords(completes))}`);
  }
  lines.push(`complete -c caisson -n "__fish_seen_subcommand_from completion" -f -a 'bash zsh fish'`, "");
  return lines.join("\n");
}

const fishWords = (completes: readonly Completed[]) => `(caisson completion --words ${kindsText(completes)} 2>/dev/null)`;
