import { CaissonError } from "../../contract/error/error.ts";
import type { CliContext } from "../context.ts";
import { type Line, line } from "./line.ts";

const SECRET_CHARACTERS_MAX = 4096;

/** Reads what the user types, without echoing it. Throws `cancelled` on Ctrl-C or at the end of the input. */
export async function askSecret({ stdin, stdout }: Pick<CliContext, "stdin" | "stdout">, question: Line): Promise<string> {
  await stdout.prompt(line`${question} `);
  stdin.setRawMode(true);
  stdin.resume();
  try {
    return await readTyped(stdin);
  } finally {
    stdin.setRawMode(false);
    stdin.pause();
    await stdout.print(line``);
  }
}

async function readTyped(stdin: NodeJS.ReadStream): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  let text = "";
  const give = () => reject(new CaissonError("cancelled", "nothing was entered"));
  const read = (bytes: Buffer | string) => {
    for (const key of bytes.toString()) {
      if (key === "\r" || key === "\n") return resolve(text.trim());
      if (key === "\u0003" || key === "\u0004") return give();
      if (key === "\u007f" || key === "\b") text = text.slice(0, -1);
      else if (key >= " " && text.length < SECRET_CHARACTERS_MAX) text += key;
    }
  };
  stdin.on("data", read).once("end", give);
  try {
    return await promise;
  } finally {
    stdin.off("data", read).off("end", give);
  }
}
