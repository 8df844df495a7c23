import { parseImageReference } from "../../contract/image-reference.ts";

/** Whether an image's reference can name anything but an image in a registry or an engine. */
export function isMachinePath(reference: string): boolean {
  return parseImageReference(reference)?.kind !== "registry";
}
