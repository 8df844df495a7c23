import type { Transform } from "node:stream";

export interface Redactor {
  text(text: string): string;
  /** The same structure with every string and key redacted. */
  json<T>(value: T): T;
  stream(): Transform;
}
