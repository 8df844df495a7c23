import fc from "fast-check";

/** Rules that overlap the default rules, and each other, far more often than random text would. */
export const permission = fc.constantFrom("allow", "ask", "deny");
export const piece = fc.constantFrom(
  "*",
  "bash:",
  "git ",
  "push",
  "--force",
  "rm -rf",
  "commit",
  "git:",
  "curl | sh",
  "request_network:",
  " x",
  "write:",
);
export const pattern = fc.array(piece, { minLength: 1, maxLength: 5 }).map((pieces) => pieces.join(""));
