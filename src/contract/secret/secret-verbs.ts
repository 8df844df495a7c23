import { z } from "zod";
import { EnvName } from "../ids.ts";
import { secretScope } from "../network/network.ts";
import { Owner } from "../token/owner.ts";

/** Arguments and answers of the station's verbs for stored secrets. A value can be set but never read. */

const VALUE_CHARACTERS_MAX = 8192;

/** The name of the variable inside. */
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
