import { ENV_NAME } from "../../contract/env-name.ts";
import { CaissonError } from "../../contract/error.ts";
import type { CliContext } from "../context.ts";

/** `K=V`; for variables, `K` alone is the value outside. Throws `invalid`. */
export function pairs(context: CliContext, texts: readonly string[], option: "env" | "label"): Record<string, string> {
  const result: Record<string, string> = {};
  for (const text of texts) {
    const equals = text.indexOf("=");
    const name = equals < 0 ? text : text.slice(0, equals);
    const value = equals < 0 && option === "env" ? context.variable(name) : text.slice(equals + 1);
    if (option === "env" && !ENV_NAME.test(name)) {
      throw new CaissonError("invalid", `--env ${JSON.stringify(text)} is not K=V`, {
        hint: "A variable's name is letters, digits and _.",
      });
    }
    if (name === "" || (equals < 0 && option === "label"))
      throw new CaissonError("invalid", `--${option} ${JSON.stringify(text)} is not K=V`);
    // A variable that is not set outside is not set inside either.
    if (value !== undefined) result[name] = value;
  }
  return result;
}
