import type { TemplateView } from "../../../contract/template/template.ts";
import type { Dockerfile } from "../dockerfile/instruction.ts";

/** What a build makes, parsed from its file. */
export interface BuildPlan {
  kind: TemplateView["kind"];
  dockerfile: Dockerfile;
  target: string | undefined;
  /** Values for ARG from the file, below those of the request. */
  args: Readonly<Record<string, string>>;
  notices: readonly string[];
}
