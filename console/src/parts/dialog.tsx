import { type ReactNode, useEffect, useRef } from "react";
import styles from "./dialog.module.css";

/**
 * A dialog over everything else, closed by Escape, a click outside, or its owner. The browser keeps the focus inside.
 */
export function Dialog({
  title,
  onClose,
  children,
  actions,
}: {
  title: string;
  onClose(): void;
  children: ReactNode;
  actions?: ReactNode;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const element = dialog.current;
    element?.showModal();
    // The browser would focus the first focusable element, even one that Tab skips. React drops the browser's own
    // attribute for this.
    const first =
      element?.querySelector<HTMLElement>("[data-first-focus]") ?? element?.querySelector<HTMLElement>("input, textarea, select");
    first?.focus();
    return () => element?.close();
  }, []);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the browser closes it on Escape.
    <dialog
      ref={dialog}
      className={styles.dialog}
      aria-label={title}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onClick={(event) => {
        if (event.target === dialog.current) onClose();
      }}
    >
      <div className={styles.inside}>
        <h2>{title}</h2>
        {children}
        {actions !== undefined && <div className={styles.actions}>{actions}</div>}
      </div>
    </dialog>
  );
}
