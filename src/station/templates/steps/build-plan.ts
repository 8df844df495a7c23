import type { TemplateView } from "../../../contract/template/template.ts";
import type { Dockerfile } from "../dockerfile/instruction.ts";

/** What a build makes, parsed from its file. */
export interface BuildPlan {
  kind: TemplateView["kind"];
  dockerfile: Dockerfile;
  /** The Dockerfile, or a devcontainer.json without one. */
  file: string;
  /** The devcontainer.json whose instructions follow those of the file; they have no line. */
  extendedBy: string | null;
  target: string | undefined;
  /** Values for ARG from the file, below those of the request. */
  args: Readonly<Record<string, string>>;
  notices: readonly string[];
}
