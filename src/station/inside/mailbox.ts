import { mkdir, readdir, readFile, rename, rm, stat, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { CaissonError } from "../../contract/error.ts";
import { InsideControl, InsideMessage, insideLimits } from "../../contract/inside-verbs.ts";
import { isErrno } from "../../lib/is-errno.ts";
import { jsonOrNull } from "../../lib/json-or-null.ts";
import { randomLetters } from "../../lib/new-id.ts";

/** What waits for the programs in a sandbox, in its folder: any process leaves it there, and it goes with it. */
export interface Mailbox {
  /** Throws `busy` when too many wait. */
  leave(message: InsideMessage): Promise<void>;
  /** Each is given once. */
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
  const names = async () => (await readdir(box).catch(() => [])).filter((name) => messageName.test(name)).sort();
  const write = async (path: string, text: string) => {
    const fresh = join(box, `.new-${randomLetters(8)}`);
    await mkdir(box, { recursive: true, mode: 0o700 });
    await writeFile(fresh, text, { mode: 0o600 });
    await rename(fresh, path);
  };
  return {
    async leave(message) {
      if ((await names()).length >= insideLimits.messagesMax) {
        throw new CaissonError("busy", `${insideLimits.messagesMax} messages wait already, and nobody inside takes them`);
      }
      await write(join(box, `${String(Date.now()).padStart(14, "0")}-${randomLetters(8)}.json`), JSON.stringify(message));
    },
    async take() {
      const taken: InsideMessage[] = [];
      for (const name of await names()) {
        // Whoever renames it has it.
        const mine = join(box, `.taken-${name}`);
        try {
          await rename(join(box, name), mine);
        } catch (error) {
          if (isErrno(error, "ENOENT")) continue;
          throw error;
        }
        const message = InsideMessage.safeParse(jsonOrNull(await readFile(mine, "utf8")));
        await rm(mine, { force: true });
        if (message.success) taken.push(message.data);
      }
      return taken;
    },
    waiting: async () => (await names()).length,
    setControl: (control) => write(join(box, "control"), control),
    async control() {
      const said = InsideControl.safeParse(await readFile(join(box, "control"), "utf8").catch(() => "resume"));
      return said.success ? said.data : "resume";
    },
    async beat() {
      const path = join(box, "beat");
      const now = new Date();
      await utimes(path, now, now).catch(() => write(path, ""));
    },
    async lastBeatAt() {
      const found = await stat(join(box, "beat")).catch(() => null);
      return found?.mtime.toISOString() ?? null;
    },
  };
}
