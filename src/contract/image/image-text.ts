import { z } from "zod";

/** A user before the first slash of a registry reference. An `@` there belongs to a digest or a user. */
const USER = /^(?:docker:\/\/)?[^/]*@(?!sha\d+:[0-9a-f]+$)/i;

/** An image reference or path. It is stored and logged unchanged, so it must not contain a user or a password. */
export const ImageText = z
  .string()
  .min(1)
  .max(4096)
  .refine((text) => !/^\s*https?:/i.test(text) && !USER.test(text), "must not contain a user, a password or http://");
