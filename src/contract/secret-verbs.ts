import { z } from "zod";
import { EnvName } from "./ids.ts";
import { secretScope } from "./network.ts";
import { Owner } from "./owner.ts";

/** Arguments and answers of the station's verbs about secrets that it keeps itself. A value goes in and never out. */

const VALUE_CHARACTERS_MAX = 8192;

/** What the variable inside is called. */
export const SecretName = EnvName.max(128);
export type SecretName = z.infer<typeof SecretName>;

export const SetSecret = z.strictObject({ value: z.string().min(1).max(VALUE_CHARACTERS_MAX), ...secretScope() });
export type SetSecret = z.input<typeof SetSecret>;

export const SecretView = z.object({
  name: SecretName,
  owner: Owner,
  ...secretScope(),
  createdAt: z.iso.datetime(),
  updatedAt: z.iso.datetime(),
});
export type SecretView = z.infer<typeof SecretView>;
