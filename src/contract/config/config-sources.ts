import type { Config } from "./config.ts";

/** Environment variables by setting. */
export const configVariables = {
  runtime: "CAISSON_RUNTIME",
  fallbackRuntime: "CAISSON_FALLBACK_RUNTIME",
  ociRuntime: "CAISSON_OCI_RUNTIME",
  criu: "CAISSON_CRIU",
  image: "CAISSON_IMAGE",
  dockerImage: "CAISSON_DOCKER_IMAGE",
} as const satisfies Partial<Record<keyof Config, string>>;

export const modelVariable = "CAISSON_MODEL";

/** The source of each setting's value: the name of an option or variable, the path of a file, or `default`. */
export type ConfigSources = Readonly<Record<string, string>>;
