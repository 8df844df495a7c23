/** Headers by which some servers take a request for one of another method or path: what was decided on would not be what is done. */
export const methodOverrides: ReadonlySet<string> = new Set(["x-http-method-override", "x-http-method", "x-method-override"]);
export const pathOverrides: ReadonlySet<string> = new Set(["x-original-url", "x-rewrite-url"]);
