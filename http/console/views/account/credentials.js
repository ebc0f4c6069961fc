// The fields that prove who changes the account: the password, and a code where the user has a second factor.

export const credentials = (me, more = {}) => [
  { name: "password", label: "Current password", type: "password", required: true, autocomplete: "current-password", ...more },
  ...(me.twoFactorAuthEnabled ? [codeField] : []),
];

export const codeField = {
  name: "twoFactorCode", label: "Code of your second factor", required: true, autocomplete: "one-time-code", hint: "Six digits of your app, or a recovery code.",
};
