// What the roles and the settings of organizations mean, in words.

export const MFA_MODES = { notRequired: "not required", adminRequired: "required from administrators", required: "required from all members" };

export const ROLES = [
  ["admin", "admin: everything, also members and the audit log"],
  ["edit", "edit: also create and delete applications, keys and tokens"],
  ["collaborate", "collaborate: change what applications contain"],
  ["view", "view: read everything"],
  ["none", "none: only what is given below"],
];

// The roles in a single application or dashboard.
export const RESOURCE_ROLES = ["collaborate", "view", "none"];

// When an invitation expires, in ms.
export const ends = (invite) => new Date(invite.inviteDate).getTime() + invite.ttl * 1000;
