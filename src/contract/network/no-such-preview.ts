import { CaissonError } from "../error/error.ts";

export function noSuchPreview(id: string): CaissonError {
  return new CaissonError("not_found", `there is no preview ${id.slice(0, 100)}`);
}
