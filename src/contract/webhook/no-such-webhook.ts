import { CaissonError } from "../error/error.ts";

export function noSuchWebhook(word: string): CaissonError {
  return new CaissonError("not_found", `there is no webhook ${JSON.stringify(word)}`, { hint: "`caisson webhook ls` lists them." });
}
