import { QueryClientProvider } from "@tanstack/react-query";
import { lazy, Suspense, useEffect, useState } from "react";
import { Redirect, Route, Router, Switch } from "wouter";
import { LiveProvider } from "./data/live.tsx";
import { createQueryClient } from "./data/query-client.ts";
import { type Arrival, forgetToken, keepToken, keptToken, takeArrival } from "./data/session.ts";
import { StationProvider } from "./data/station.tsx";
import { Loading } from "./parts/loading.tsx";
import { wordsOf } from "./parts/problem.tsx";
import { Toasts } from "./parts/toasts.tsx";
import { aroundNavigation } from "./parts/unsaved.ts";
import { CodeSignIn } from "./shell/code-sign-in.tsx";
import { Keys } from "./shell/keys.tsx";
import { LeaveDialog } from "./shell/leave-dialog.tsx";
import { NotFound } from "./shell/not-found.tsx";
import { Notices } from "./shell/notices.tsx";
import { Shell } from "./shell/shell.tsx";
import { SignIn } from "./shell/sign-in.tsx";

const Run = lazy(() => import("./pages/run/run.tsx"));
const Runs = lazy(() => import("./pages/runs/runs.tsx"));
const Sandboxes = lazy(() => import("./pages/sandboxes/sandboxes.tsx"));
const Sandbox = lazy(() => import("./pages/sandbox/sandbox.tsx"));
const Start = lazy(() => import("./pages/start/start.tsx"));
const Inbox = lazy(() => import("./pages/inbox/inbox.tsx"));
const Settings = lazy(() => import("./pages/settings/settings.tsx"));
const Work = lazy(() => import("./pages/work-list/work.tsx"));
const Workflow = lazy(() => import("./pages/workflow/workflow.tsx"));
const Spec = lazy(() => import("./pages/spec/spec.tsx"));
const Ship = lazy(() => import("./pages/ship/ship.tsx"));
const Merge = lazy(() => import("./pages/merge/merge.tsx"));
const Best = lazy(() => import("./pages/best/best.tsx"));
const Compare = lazy(() => import("./pages/compare/compare.tsx"));
const Welcome = lazy(() => import("./pages/welcome/welcome.tsx"));

const TOKEN_IGNORED =
  "The address contained a token, which was ignored because any page could have put it there. If it is yours, paste it below.";

/** Read outside the component: React may compute the initial state twice, but the first read clears the address. */
const firstSession = readSession();

export function App() {
  const [{ token, arrival, notice }, setSession] = useState(firstSession);
  const [queries] = useState(createQueryClient);
  const setToken = (nextToken: string | null, words?: string) =>
    setSession({ token: nextToken, arrival: { kind: "nothing" }, notice: words });
  const takeToken = (nextToken: string) => {
    keepToken(nextToken);
    queries.clear();
    setToken(nextToken);
  };
  useEffect(() => {
    const onHash = () => {
      const session = readSession();
      if (session.arrival.kind !== "nothing") setSession(session);
    };
    window.addEventListener("hashchange", onHash);
    return () => window.removeEventListener("hashchange", onHash);
  }, []);
  if (arrival.kind === "code") {
    const onProblem = (error: unknown) => {
      const { message, hint = "" } = wordsOf(error);
      setToken(null, `${message}. ${hint}`);
    };
    const { code } = arrival;
    return <CodeSignIn key={code} code={code} kept={token} onToken={takeToken} onStay={() => setToken(token)} onProblem={onProblem} />;
  }
  if (token === null) return <SignIn notice={notice} onToken={takeToken} />;
  const signOut = () => {
    forgetToken();
    queries.clear();
    setToken(null);
  };
  return (
    <QueryClientProvider client={queries}>
      <StationProvider token={token} signOut={signOut}>
        <LiveProvider>
          <Router aroundNav={aroundNavigation}>
            <Shell>
              <Suspense fallback={<Loading />}>
                <Pages />
              </Suspense>
            </Shell>
            <Keys />
            <Notices />
            <Toasts />
            <LeaveDialog />
          </Router>
        </LiveProvider>
      </StationProvider>
    </QueryClientProvider>
  );
}

interface Session {
  token: string | null;
  arrival: Arrival;
  /** Shown on the sign-in page. */
  notice?: string | undefined;
}

function readSession(): Session {
  const arrival = takeArrival();
  return { token: keptToken(), arrival, notice: arrival.kind === "token" ? TOKEN_IGNORED : undefined };
}

function Pages() {
  return (
    <Switch>
      <Route path="/">
        <Redirect to="/runs" replace />
      </Route>
      <Route path="/runs" component={Runs} />
      <Route path="/runs/:run" component={Run} />
      <Route path="/sandboxes" component={Sandboxes} />
      <Route path="/sandboxes/:sandbox" component={Sandbox} />
      <Route path="/work" component={Work} />
      <Route path="/workflows/:workflow" component={Workflow} />
      <Route path="/specs/:spec" component={Spec} />
      <Route path="/ships/:ship" component={Ship} />
      <Route path="/merges/:merge" component={Merge} />
      <Route path="/bests/:best" component={Best} />
      <Route path="/compare/:one/:other" component={Compare} />
      <Route path="/start" component={Start} />
      <Route path="/inbox" component={Inbox} />
      <Route path="/settings/:part?" component={Settings} />
      <Route path="/welcome" component={Welcome} />
      <Route component={NotFound} />
    </Switch>
  );
}
