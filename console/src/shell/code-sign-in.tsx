import { type ReactNode, useEffect, useState } from "react";
import { connect } from "../../../src/client/connect.ts";
import { CaissonError } from "../../../src/contract/error/error.ts";
import type { CodeView } from "../../../src/contract/token/sign-in-code.ts";
import { Button } from "../parts/button.tsx";
import { Loading } from "../parts/loading.tsx";
import { useTitle } from "../parts/page.tsx";
import { wordsOf } from "../parts/problem.tsx";
import styles from "./sign-in.module.css";

type State =
  | { kind: "looking" }
  | { kind: "asking"; view: CodeView; current: string | null }
  /** The browser has a valid token, and the station rejected the code. */
  | { kind: "refused"; error: unknown };

interface Props {
  code: string;
  kept: string | null;
  onToken(token: string): void;
  onStay(): void;
  /** Called if the browser has no valid token and the station rejects the code. */
  onProblem(error: unknown): void;
}

/**
 * Exchanges the code in the address for a token. Any page can send a browser here with a foreign code, so the console
 * asks first. It signs in without asking only if the browser has no valid token and the code was registered over the
 * station's socket.
 */
export function CodeSignIn({ code, kept: storedToken, onToken, onStay, onProblem }: Props) {
  const [state, setState] = useState<State>({ kind: "looking" });
  const fail = (error: unknown, isSignedIn: boolean) => (isSignedIn ? setState({ kind: "refused", error }) : onProblem(error));
  const signIn = (isSignedIn: boolean) => exchangeOnce(code).then(onToken, (error: unknown) => fail(error, isSignedIn));
  // biome-ignore lint/correctness/useExhaustiveDependencies: runs once per code; App mounts a new component for every code
  useEffect(() => {
    let isShown = true;
    void (async () => {
      const current = storedToken === null ? null : await holderOf(storedToken);
      const view = await connect({ url: location.origin, token: code })
        .codes.view()
        .catch((error: unknown) => {
          if (isShown) fail(error, current !== null);
        });
      if (view === undefined || !isShown) return;
      if (current === null && view.fromSocket) await signIn(false);
      else setState({ kind: "asking", view, current });
    })();
    return () => {
      isShown = false;
    };
  }, []);
  switch (state.kind) {
    case "looking":
      return <Loading />;
    case "asking":
      return <Question {...state} onSignIn={() => void signIn(state.current !== null)} onStay={onStay} />;
    case "refused":
      return <Refusal error={state.error} onStay={onStay} />;
    default:
      return state satisfies never;
  }
}

/** A code works once, but React calls effects twice in development. */
const exchanges = new Map<string, Promise<string>>();
function exchangeOnce(code: string): Promise<string> {
  const running =
    exchanges.get(code) ??
    connect({ url: location.origin, token: code })
      .codes.exchange()
      .then(({ token }) => token);
  exchanges.set(code, running);
  return running;
}

/** The token's owner, name and scope as the station reports them; null if the token is no longer valid. */
async function holderOf(token: string): Promise<string | null> {
  try {
    const { caller } = await connect({ url: location.origin, token }).status();
    return caller === undefined ? "an unknown owner" : `${caller.owner}, ${caller.by}, scope ${caller.scope ?? "none"}`;
  } catch (error) {
    if (error instanceof CaissonError && error.code === "unauthenticated") return null;
    return wordsOf(error).message;
  }
}

function Question({ view, current, onSignIn, onStay }: { view: CodeView; current: string | null; onSignIn(): void; onStay(): void }) {
  const { owner, name, scope, by } = view;
  const isSwitch = current !== null;
  return (
    <Frame title={isSwitch ? "Use another token?" : `Sign in as ${owner}?`}>
      <p>
        The address that you opened contains a sign-in code. If you did not request it, {isSwitch ? "stay signed in" : "do not sign in"}:
        what you do here would belong to {owner}.
      </p>
      <dl>
        {isSwitch && (
          <>
            <dt>Signed in as</dt>
            <dd>{current}</dd>
          </>
        )}
        <dt>The code signs in</dt>
        <dd>{`${owner}, token ${name}, scope ${scope}`}</dd>
        <dt>Registered by</dt>
        <dd>{by}</dd>
      </dl>
      <Button look="main" onClick={onStay}>
        {isSwitch ? "Stay signed in" : "Do not sign in"}
      </Button>
      <Button onClick={onSignIn}>{isSwitch ? "Use the other token" : `Sign in as ${owner}`}</Button>
    </Frame>
  );
}

function Refusal({ error, onStay }: { error: unknown; onStay(): void }) {
  const { message, hint } = wordsOf(error);
  return (
    <Frame title="The code was rejected">
      <p role="alert">
        {message}. {hint}
      </p>
      <Button look="main" onClick={onStay}>
        Stay signed in
      </Button>
    </Frame>
  );
}

function Frame({ title, children }: { title: string; children: ReactNode }) {
  useTitle(title);
  return (
    <main className={styles.page} id="main">
      <div className={styles.form}>
        <h1>{title}</h1>
        {children}
      </div>
    </main>
  );
}
