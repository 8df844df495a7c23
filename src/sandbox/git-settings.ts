import { insideTarget } from "./inside-folder.ts";

/** The author of commits, from the user's own Git settings. */
export interface GitIdentity {
  name?: string;
  email?: string;
}

const NAME = "gitconfig";

/**
 * Makes Git inside read our settings instead of the system's, which ours include. The repository's settings and those
 * of the user inside take precedence.
 */
export const gitSettingsEnv = { GIT_CONFIG_SYSTEM: `${insideTarget}/${NAME}` } as const;

/** Returns the file for the folder that programs inside see at `insideTarget`. */
export function gitSettingsFile(context: { gitIdentity?: () => GitIdentity }): Record<string, string> {
  return { [NAME]: gitSettings(context.gitIdentity?.() ?? {}) };
}

/**
 * Returns the system settings of Git inside. The wall protects every folder inside, so Git need not reject a folder
 * because of its owner.
 */
export function gitSettings(identity: GitIdentity): string {
  const { name, email } = identity;
  const user = [...(name ? [`\tname = ${quote(name)}`] : []), ...(email ? [`\temail = ${quote(email)}`] : [])];
  return ["[include]", "\tpath = /etc/gitconfig", "[safe]", "\tdirectory = *", ...(user.length === 0 ? [] : ["[user]", ...user]), ""].join(
    "\n",
  );
}

function quote(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is taken out.
  return `"${text.replace(/[\u0000-\u001f\u007f]/g, " ").replace(/[\\"]/g, "\\$&")}"`;
}
