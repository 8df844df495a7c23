/** The name of an environment variable. */
export const ENV_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;
