/** Returns the options without undefined members: an option that is not set must be absent. */
export function defined<T extends object>(options: T): Defined<T> {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as Defined<T>;
}

type Optional<T> = { [K in keyof T]: undefined extends T[K] ? K : never }[keyof T];
export type Defined<T> = { [K in Exclude<keyof T, Optional<T>>]: T[K] } & { [K in Optional<T>]?: Exclude<T[K], undefined> };
