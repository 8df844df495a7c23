import { createInterface } from "node:readline/promises";
import type { CliContext } from "../context.ts";
import { type Line, line } from "./line.ts";

type Asking = Pick<CliContext, "stdin" | "stdout">;

/** Whether input and output are a terminal, so that a user can answer. */
export const canAsk = ({ stdin, stdout }: Asking) => stdout.isTerminal && stdin.isTTY;

/** Asks a question; anything but yes means no. */
export async function askYes(context: Asking, question: Line): Promise<boolean> {
  await context.stdout.prompt(line`${question} [y/N] `);
  const reader = createInterface({ input: context.stdin });
  const answer = await new Promise<string>((settle) => {
    reader.once("line", settle);
    reader.once("close", () => settle(""));
  });
  reader.close();
  return /^y(es)?$/i.test(answer.trim());
}
