import { z } from "zod";
import { CaissonError } from "../contract/error.ts";
import { SandboxSpec, type SandboxSpecInput } from "../contract/sandbox.ts";

/** What a caller asks for, checked and complete. Throws `invalid` with what is wrong where. */
export function parseSpec(input: SandboxSpecInput): SandboxSpec {
  const parsed = SandboxSpec.safeParse(input);
  if (parsed.success) return parsed.data;
  throw new CaissonError("invalid", `the sandbox's spec is not valid:\n${z.prettifyError(parsed.error)}`);
}
