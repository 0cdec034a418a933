//! The long text of every rule, as files beside the code so that they can be read as they are.

use crate::Code;

macro_rules! texts {
    ($($code:ident)+) => {
        impl Code {
            /// A text for people: the rule, its reason, a plan that breaks it, and the repair. Ends with a newline.
            #[must_use]
            pub fn explain(self) -> &'static str {
                match self {
                    $(Self::$code => include_str!(concat!("../explain/", stringify!($code), ".md")),)+
                }
            }
        }
    };
}

texts! {
    V001 V002 V003 V004 V005 V006 V007 V008 V009 V010 V011 V012 V013 V014 V015 V016 V017 V018 V019 V020 V021 V022
    C001 C002 C003 C004 C005 C006 C007
    P001 P002 P003 P004 P005 P006 P007 P008 P009
    F001 F002 F003 F004 F005 F006 F007 F008 F009 F010 F011 F012 F013 F014 F015 F016
}
