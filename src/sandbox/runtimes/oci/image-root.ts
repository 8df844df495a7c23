import { CaissonError } from "../../../contract/error.ts";
import type { House } from "./house.ts";
import type { RootLayer } from "./layers.ts";
import type { GeneratedFile } from "./template/etc-files.ts";
import type { TemplateFolder } from "./template/host-template.ts";

export interface ImageRoot {
  layers: RootLayer[];
  folders: TemplateFolder[];
  files: GeneratedFile[];
  env: Record<string, string>;
}

export async function imageRoot(_house: House, reference: string, _options: { signal?: AbortSignal | undefined }): Promise<ImageRoot> {
  throw new CaissonError("unsupported", `images cannot be used yet: ${reference}`);
}
