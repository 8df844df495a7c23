import { lazy, Suspense, useEffect, useRef, useState } from "react";
import { useLocation } from "wouter";
import { listenForPlaces } from "./shortcuts.ts";

const Palette = lazy(() => import("./palette.tsx"));

/** Handles the keys that work everywhere. */
export function Keys() {
  const [, navigate] = useLocation();
  const [isOpen, setOpen] = useState(false);
  const typed = useTypedEarly(isOpen);
  useEffect(() => listenForPlaces(navigate), [navigate]);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key !== "k" || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      setOpen((wasOpen) => !wasOpen);
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
  if (!isOpen) return null;
  return (
    <Suspense fallback={null}>
      <Palette takeTyped={() => typed.current} onClose={() => setOpen(false)} />
    </Suspense>
  );
}

/** Collects letters typed while the palette loads. They belong to it, and are not shortcuts of the page. */
function useTypedEarly(isOpen: boolean) {
  const typed = useRef("");
  useEffect(() => {
    typed.current = "";
    if (!isOpen) return;
    const onKey = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]") !== null) return;
      if (event.key.length === 1) typed.current += event.key;
      event.preventDefault();
      event.stopImmediatePropagation();
    };
    addEventListener("keydown", onKey, { capture: true });
    return () => removeEventListener("keydown", onKey, { capture: true });
  }, [isOpen]);
  return typed;
}
