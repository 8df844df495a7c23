import { z } from "zod";

/** What stands before the first slash of a name in a registry; an `@` there is a digest's or a user's. */
const USER = /^(?:docker:\/\/)?[^/]*@(?!sha\d+:[0-9a-f]+$)/i;

/** An image by its name or place. It is stored and logged as it is, so it never carries a user or a password. */
export const ImageText = z
  .string()
  .min(1)
  .max(4096)
  .refine((text) => !/^\s*https?:/i.test(text) && !USER.test(text), "an image's name has no user, password or http://");
