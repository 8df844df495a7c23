import type { ButtonHTMLAttributes, ReactNode } from "react";
import { Link } from "wouter";
import styles from "./button.module.css";

interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  /** `main`: the one thing to do here; `plain`: no frame until it is pointed at. */
  look?: "main" | "normal" | "plain" | "danger";
  icon?: ReactNode;
  /** For one that shows its icon only: what it does. */
  label?: string;
  /** Of a choice that is on. */
  isOn?: boolean;
  /** Of the one in a dialog that Enter presses at first. */
  "data-first-focus"?: "";
}

export function Button({ look = "normal", icon, label, isOn, children, className = "", ...rest }: ButtonProps) {
  return (
    <button
      type="button"
      {...rest}
      aria-label={label ?? rest["aria-label"]}
      title={rest.title ?? label}
      {...(isOn !== undefined && { "aria-pressed": isOn })}
      className={`${styles.button} ${styles[look]} ${children === undefined ? styles.square : ""} ${className}`}
    >
      {icon}
      {children}
    </button>
  );
}

/** A way to another page that looks like a button; its icon only, where it has a label. */
export function ButtonLink({
  href,
  look = "normal",
  icon,
  label,
  children,
}: Pick<ButtonProps, "look" | "icon" | "label" | "children"> & { href: string }) {
  return (
    <Link
      href={href}
      aria-label={label}
      title={label}
      className={`${styles.button} ${styles[look]} ${children === undefined ? styles.square : ""}`}
    >
      {icon}
      {children}
    </Link>
  );
}
