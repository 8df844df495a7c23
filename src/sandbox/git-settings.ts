import { insideTarget } from "./inside-folder.ts";

/** Who commits: of the user's own settings. */
export interface GitIdentity {
  name?: string;
  email?: string;
}

const NAME = "gitconfig";

/**
 * Makes git inside read our settings in place of the system's, which they include: those of a repository and of the
 * user inside win over them.
 */
export const gitSettingsEnv = { GIT_CONFIG_SYSTEM: `${insideTarget}/${NAME}` } as const;

/** The file to put into the folder that programs inside see at `insideTarget`. */
export function gitSettingsFile(context: { gitIdentity?: () => GitIdentity }): Record<string, string> {
  return { [NAME]: gitSettings(context.gitIdentity?.() ?? {}) };
}

/**
 * What git inside starts from. Whoever owns a folder inside, the wall is around all of it, so git need not refuse it
 * for its owner.
 */
export function gitSettings(identity: GitIdentity): string {
  const { name, email } = identity;
  const user = [...(name ? [`\tname = ${quoted(name)}`] : []), ...(email ? [`\temail = ${quoted(email)}`] : [])];
  return ["[include]", "\tpath = /etc/gitconfig", "[safe]", "\tdirectory = *", ...(user.length === 0 ? [] : ["[user]", ...user]), ""].join(
    "\n",
  );
}

function quoted(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is taken out.
  return `"${text.replace(/[\u0000-\u001f\u007f]/g, " ").replace(/[\\"]/g, "\\$&")}"`;
}
