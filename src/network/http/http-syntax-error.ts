import { CaissonError } from "../../contract/error.ts";

/** Something on the wire is not HTTP/1.1 as this code takes it. The message names what is wrong and never repeats the bytes, which may hold a secret. */
export class HttpSyntaxError extends CaissonError {
  /** What the one who sent it is answered, when it was a request. */
  readonly status: number;

  constructor(message: string, status = 400) {
    super("invalid", message);
    this.status = status;
  }
}
