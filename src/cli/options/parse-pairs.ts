import { ENV_NAME } from "../../contract/env-name.ts";
import { CaissonError } from "../../contract/error/error.ts";
import type { CliContext } from "../context.ts";

/** Parses `K=V`. For variables, `K` alone takes the value from the user's environment. Throws `invalid`. */
export function pairs(context: CliContext, texts: readonly string[], option: "env" | "label" | "build-arg"): Record<string, string> {
  const result: Record<string, string> = {};
  for (const text of texts) {
    const equals = text.indexOf("=");
    const name = equals < 0 ? text : text.slice(0, equals);
    const value = equals < 0 && option === "env" ? context.variable(name) : text.slice(equals + 1);
    if (option === "env" && !ENV_NAME.test(name)) {
      throw new CaissonError("invalid", `--env ${JSON.stringify(text)} is not K=V`, {
        hint: "Use only letters, digits and _ in the variable's name.",
      });
    }
    if (name === "" || (equals < 0 && option === "label"))
      throw new CaissonError("invalid", `--${option} ${JSON.stringify(text)} is not K=V`);
    // A variable that is not set outside stays unset inside.
    if (value !== undefined) result[name] = value;
  }
  return result;
}
