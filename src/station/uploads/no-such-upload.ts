import { CaissonError } from "../../contract/error.ts";

export function noSuchUpload(id: string): CaissonError {
  return new CaissonError("not_found", `there is no upload ${JSON.stringify(id.slice(0, 80))}`, {
    hint: "One that nothing uses goes after a while; send it again.",
  });
}
