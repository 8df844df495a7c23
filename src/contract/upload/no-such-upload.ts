import { CaissonError } from "../error/error.ts";

export function noSuchUpload(id: string): CaissonError {
  return new CaissonError("not_found", `there is no upload ${JSON.stringify(id.slice(0, 80))}`, {
    hint: "Unused uploads expire. Send it again.",
  });
}
