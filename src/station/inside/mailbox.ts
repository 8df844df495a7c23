import { mkdir, readdir, readFile, rename, rm, stat, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { CaissonError } from "../../contract/error/error.ts";
import { InsideControl, InsideMessage, insideLimits } from "../../contract/inside/inside-verbs.ts";
import { ABSENT, ifErrno, isErrno, jsonOrNull } from "../../lib/failures.ts";
import { randomLetters } from "../../lib/new-id.ts";

/**
 * The messages and the control state for programs in a sandbox, in its folder. Any process can write them, and they are
 * removed together with the sandbox.
 */
export interface Mailbox {
  /** Throws `busy` if too many messages are pending. */
  leave(message: InsideMessage): Promise<void>;
  /** Delivers each message once. */
  take(): Promise<InsideMessage[]>;
  waiting(): Promise<number>;
  setControl(control: InsideControl): Promise<void>;
  control(): Promise<InsideControl>;
  beat(): Promise<void>;
  lastBeatAt(): Promise<string | null>;
}

const messageName = /^[0-9]{14}-[a-z2-7]{8}\.json$/;

export function openMailbox(folder: string): Mailbox {
  const box = join(folder, "mail");
  const names = async () => (await ifErrno(readdir(box), ABSENT, [])).filter((name) => messageName.test(name)).sort();
  const write = async (path: string, text: string) => {
    const fresh = join(box, `.new-${randomLetters(8)}`);
    await mkdir(box, { recursive: true, mode: 0o700 });
    await writeFile(fresh, text, { mode: 0o600 });
    await rename(fresh, path);
  };
  return {
    async leave(message) {
      if ((await names()).length >= insideLimits.messagesMax) {
        throw new CaissonError("busy", `${insideLimits.messagesMax} messages are already pending, and no program inside reads them`);
      }
      await write(join(box, `${String(Date.now()).padStart(14, "0")}-${randomLetters(8)}.json`), JSON.stringify(message));
    },
    async take() {
      const messages: InsideMessage[] = [];
      for (const name of await names()) {
        // Only one process succeeds in renaming the file, and that process delivers the message.
        const mine = join(box, `.taken-${name}`);
        try {
          await rename(join(box, name), mine);
        } catch (error) {
          if (isErrno(error, "ENOENT")) continue;
          throw error;
        }
        const message = InsideMessage.safeParse(jsonOrNull(await readFile(mine, "utf8")));
        await rm(mine, { force: true });
        if (message.success) messages.push(message.data);
      }
      return messages;
    },
    waiting: async () => (await names()).length,
    setControl: (control) => write(join(box, "control"), control),
    async control() {
      const result = InsideControl.safeParse(await ifErrno(readFile(join(box, "control"), "utf8"), ABSENT, "resume"));
      return result.success ? result.data : "resume";
    },
    async beat() {
      const path = join(box, "beat");
      const now = new Date();
      await utimes(path, now, now).catch(() => write(path, ""));
    },
    async lastBeatAt() {
      const found = await ifErrno(stat(join(box, "beat")), ABSENT, null);
      return found?.mtime.toISOString() ?? null;
    },
  };
}
