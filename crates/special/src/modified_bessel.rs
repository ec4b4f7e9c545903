//! Modified Bessel functions of orders zero and one.

use cuprum_core::numpy;
use cuprum_macros::kernel;

kernel! {
    // Coefficients of I0(x) in powers of x^2 / 4, for x <= 8.
    const I0: [f64; 17] = [1.0, 1.0, 0.2500000000000001, 0.027777777777777565, 0.001736111111111378, 6.944444444424266e-05, 1.929012345779623e-06, 3.936759885655969e-08, 6.15118741355768e-10, 7.594056840734793e-12, 7.594080018984369e-14, 6.275862240680015e-16, 4.360039776280282e-18, 2.569859089813576e-20, 1.3510023029551199e-22, 4.939910985617876e-25, 3.646032083242615e-27];
    // Coefficients of (2 I1(x) / x - 1) * 4 / x^2 in powers of x^2 / 4, for x <= 8.
    const I1: [f64; 15] = [0.5, 0.08333333333333331, 0.006944444444444501, 0.00034722222222211837, 1.1574074074173927e-05, 2.755731921820714e-07, 4.920949883232588e-09, 6.834652021789808e-11, 7.594068700101541e-13, 6.90355536051477e-15, 5.23132598350008e-17, 3.344212859287525e-19, 1.8808297774933083e-21, 7.605583976506685e-24, 5.670623427712736e-26];
    // Coefficients of sqrt(x) exp(-x) I0(x) and sqrt(x) exp(-x) I1(x) in powers of 1 / x - 1/16, for x >= 8.
    const I0E_LARGE_COEFFICIENTS: [f64; 25] = [0.4021765094450081, 0.05376883173868578, 0.03487131504433421, 0.045641866407657626, 0.09724543407409889, 0.3118044113605642, 1.488511469422797, 10.556450691041782, 92.54957868357663, 519.1544729811255, -7419.128382995461, -235892.17201949164, -1521307.9511109844, 34013810.26426359, 535421405.2863237, -4042104207.8826466, -109823971752.7312, 448648928096.5527, 17179755038779.672, -43187695177003.164, -1957227549891222.0, 2955427622574181.0, 1.4165400106323846e+17, -1.0032565307002539e+17, -4.807273001524164e+18];
    const I1E_LARGE_COEFFICIENTS: [f64; 25] = [0.38939845902587233, -0.1559932350917718, -0.05612435554147566, -0.061597889333523316, -0.12025267045650233, -0.36530875384927824, -1.6779377400121984, -11.577400373224746, -100.39025723302451, -579.1516760148846, 7404.622371272452, 246892.9396458841, 1681654.6865824007, -34418283.375738196, -568415630.5820023, 3950179030.209428, 115158249599.79796, -424636685611.7582, -17919826653775.188, 40012614542674.734, 2036917237180172.0, -2710242472733947.0, -1.472783095034265e+17, 9.168242772145477e+16, 4.996100354491001e+18];
    // Coefficients of (K0(x) + (log(x / 2) + Euler's constant) I0(x)) * 4 / x^2 and (K1(x) - 1 / x - log(x / 2) I1(x)) / x, in powers of
    // x^2 / 4, for x <= 1.
    const K0: [f64; 7] = [1.0, 0.37499999999999506, 0.050925925926242024, 0.0036168981405652273, 0.0001585649014172421, 4.7255727608746305e-06, 1.0354750399148377e-07];
    const K1: [f64; 9] = [0.03860783245076643, -0.16819608377461678, -0.045393791740213914, -0.004795547459832568, -0.0002788398729931329, -1.0355619205842157e-05, -2.6788659612207464e-07, -5.112750264314367e-09, -7.60406145588698e-11];
    // Coefficients of sqrt(x) exp(x) K0(x) and sqrt(x) exp(x) K1(x) in powers of 1 / x - centre, for x >= 1. Each row belongs to one
    // interval of 1 / x, and `centre` is a point near its middle.
    const K0E_LARGE_COEFFICIENTS: [[f64; 17]; 3] = [[1.2438463520997634, -0.14660560767673705, 0.07364202088004967, -0.06512967200280817, 0.08077402708398614, -0.12674289660778607, 0.23745254759608034, -0.5119661143876885, 1.2386089746489695, -3.3012624152971006, 9.560544295326666, -29.812213807993334, 99.01766661335496, -334.2751045685068, 1217.576925230374, -6668.940361965612, 28079.087882619555], [1.2185953385133905, -0.12428584729955822, 0.04852626896438338, -0.030705219632808665, 0.025487500155929353, -0.025328849572740404, 0.028681193353758017, -0.035900237744611985, 0.04867957429213427, -0.07049393441547641, 0.10788817904101183, -0.17333437907773944, 0.28997428957241783, -0.4880951958616365, 0.8667993715066559, -2.1282154441725476, 4.134482317803989], [1.171596369060447, -0.09386029211830967, 0.025260846158474414, -0.010152685395984927, 0.005055701273311463, -0.002888001764597591, 0.0018178911413211732, -0.0012310521489366985, 0.0008829602537253239, -0.0006634441916255955, 0.0005182562078411487, -0.00042023748604539724, 0.0003496528595657482, -0.000277790568183293, 0.00023790771168536378, -0.0003275846173585051, 0.0003057795893093475]];
    const K1E_LARGE_COEFFICIENTS: [[f64; 17]; 3] = [[1.2821438724478937, 0.45298577046177985, -0.1263178106063245, 0.09377854511941014, -0.10674407023885822, 0.1591304932681476, -0.2881226497252487, 0.606213012562098, -1.4398865975447441, 3.7829850595237624, -10.829856598457319, 33.44917849920184, -110.21453588155156, 369.88720785062065, -1339.7267868993722, 7275.2546096635915, -30493.914032094923], [1.363151890371342, 0.4133989510154611, -0.08906767808116978, 0.04708634591387301, -0.03573509622581176, 0.033632118441226454, -0.03670510022857992, 0.04472897841682948, -0.059422866495634157, 0.08466933256734645, -0.12788642772646053, 0.2032125273124639, -0.33680986496616666, 0.5628507270908495, -0.9927450520642377, 2.4143816960323847, -4.665102548561856], [1.5299689672284305, 0.35449490896775215, -0.051775039835863755, 0.017188052357302617, -0.007759603821613925, 0.004170316708570986, -0.002516658515643933, 0.0016519003039128365, -0.001156499217733268, 0.0008522894108922844, -0.0006552229188134685, 0.0005240848600326991, -0.00043104989261618287, 0.0003398769488052714, -0.0002886349544892826, 0.00039155503899424905, -0.000362994056528083]];

    /// Returns I0(x) for 0 <= x <= 8.
    #[helper]
    fn i0_small(x: f64) -> f64 {
        (0.25 * x * x).polynomial(I0)
    }

    #[helper]
    fn i1_small(x: f64) -> f64 {
        let z = 0.25 * x * x;
        let half = 0.5 * x;
        half.mul_add(z * z.polynomial(I1), half)
    }

    /// Returns exp(-x) I0(x) for x >= 8.
    #[helper]
    fn i0e_large(x: f64) -> f64 {
        (1.0 / x - 0.0625).polynomial(I0E_LARGE_COEFFICIENTS) / x.sqrt()
    }

    #[helper]
    fn i1e_large(x: f64) -> f64 {
        (1.0 / x - 0.0625).polynomial(I1E_LARGE_COEFFICIENTS) / x.sqrt()
    }

    /// Returns `exp(x) * factor`, also if exp(x) alone overflows.
    #[helper]
    fn exp_times_factor(x: f64, factor: f64) -> f64 {
        let half = (0.5 * x).exp();
        if x.abs() < 690.0 { x.exp() * factor } else { half * factor * half }
    }

    #[helper]
    fn i0_f64(x: f64) -> f64 {
        let y = x.abs();
        if y <= 8.0 {
            return i0_small(y);
        }
        if y > 720.0 { INFINITY } else { exp_times_factor(y, i0e_large(y)) }
    }

    #[helper]
    fn i1_f64(x: f64) -> f64 {
        let y = x.abs();
        if y <= 8.0 {
            return i1_small(x);
        }
        if y > 720.0 { INFINITY.copysign(x) } else { exp_times_factor(y, i1e_large(y)).copysign(x) }
    }

    #[helper]
    fn i0e_f64(x: f64) -> f64 {
        let y = x.abs();
        if y <= 8.0 { (-y).exp() * i0_small(y) } else { i0e_large(y) }
    }

    #[helper]
    fn i1e_f64(x: f64) -> f64 {
        let y = x.abs();
        if y <= 8.0 { (-y).exp() * i1_small(x) } else { i1e_large(y).copysign(x) }
    }

    /// Returns K0(x) for 0 < x <= 1.
    #[helper]
    fn k0_small(x: f64) -> f64 {
        let z = 0.25 * x * x;
        // The constant is log(2) minus Euler's constant.
        let log = x.ln() - 0.11593151565841244881;
        z * z.polynomial(K0) - log * i0_small(x)
    }

    #[helper]
    fn k1_small(x: f64) -> f64 {
        1.0 / x + ((x.ln() - LN_2) * i1_small(x) + x * (0.25 * x * x).polynomial(K1))
    }

    /// Returns exp(x) K0(x) for x > 1.
    #[helper]
    fn k0e_large(x: f64) -> f64 {
        let w = 1.0 / x;
        if w < 0.125 {
            return (w - 0.0625).polynomial(K0E_LARGE_COEFFICIENTS[0]) / x.sqrt();
        }
        let middle = if w < 0.375 { 0.25 } else { 0.6875 };
        (w - middle).polynomial(K0E_LARGE_COEFFICIENTS[if w < 0.375 { 1 } else { 2 }]) / x.sqrt()
    }

    #[helper]
    fn k1e_large(x: f64) -> f64 {
        let w = 1.0 / x;
        if w < 0.125 {
            return (w - 0.0625).polynomial(K1E_LARGE_COEFFICIENTS[0]) / x.sqrt();
        }
        let middle = if w < 0.375 { 0.25 } else { 0.6875 };
        (w - middle).polynomial(K1E_LARGE_COEFFICIENTS[if w < 0.375 { 1 } else { 2 }]) / x.sqrt()
    }

    /// Returns K0, K1 or their scaled forms for x <= 0 or NaN: infinity at 0, otherwise NaN.
    #[helper]
    fn k0_k1_outside_domain(x: f64) -> f64 {
        if x == 0.0 { INFINITY } else { NAN }
    }

    #[helper]
    fn k0_f64(x: f64) -> f64 {
        if !(x > 0.0) {
            return k0_k1_outside_domain(x);
        }
        if x <= 1.0 { k0_small(x) } else { exp_times_factor(-x, k0e_large(x)) }
    }

    #[helper]
    fn k1_f64(x: f64) -> f64 {
        if !(x > 0.0) {
            return k0_k1_outside_domain(x);
        }
        if x <= 1.0 { k1_small(x) } else { exp_times_factor(-x, k1e_large(x)) }
    }

    #[helper]
    fn k0e_f64(x: f64) -> f64 {
        if !(x > 0.0) {
            return k0_k1_outside_domain(x);
        }
        if x <= 1.0 { x.exp() * k0_small(x) } else { k0e_large(x) }
    }

    #[helper]
    fn k1e_f64(x: f64) -> f64 {
        if !(x > 0.0) {
            return k0_k1_outside_domain(x);
        }
        if x <= 1.0 { x.exp() * k1_small(x) } else { k1e_large(x) }
    }

    /// Returns the modified Bessel function of the first kind of order 0 (`scipy.special.i0`), elementwise.
    ///
    /// # Errors
    /// Complex numbers.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> cuprum_core::Result<()> {
    /// assert_eq!(cuprum_special::i0(0.0)?.item()?, 1.0);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("special.i0(x, /, out=None, *, where=True, casting='same_kind', order='K', dtype=None)")]
    pub fn i0<T: Double>(x: T) -> T {
        i0_f64(x as f64) as T
    }

    /// Returns the modified Bessel function of the first kind of order 1 (`scipy.special.i1`), elementwise.
    ///
    /// # Errors
    /// Complex numbers.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> cuprum_core::Result<()> {
    /// assert_eq!(cuprum_special::i1(0.0)?.item()?, 0.0);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("special.i1(x, /, out=None, *, where=True, casting='same_kind', order='K', dtype=None)")]
    pub fn i1<T: Double>(x: T) -> T {
        i1_f64(x as f64) as T
    }

    /// Returns `exp(-|x|) * i0(x)` (`scipy.special.i0e`), elementwise.
    ///
    /// # Errors
    /// Complex numbers.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> cuprum_core::Result<()> {
    /// assert_eq!(cuprum_special::i0e(0.0)?.item()?, 1.0);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("special.i0e(x, /, out=None, *, where=True, casting='same_kind', order='K', dtype=None)")]
    pub fn i0e<T: Double>(x: T) -> T {
        i0e_f64(x as f64) as T
    }

    /// Returns `exp(-|x|) * i1(x)` (`scipy.special.i1e`), elementwise.
    ///
    /// # Errors
    /// Complex numbers.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> cuprum_core::Result<()> {
    /// assert_eq!(cuprum_special::i1e(0.0)?.item()?, 0.0);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("special.i1e(x, /, out=None, *, where=True, casting='same_kind', order='K', dtype=None)")]
    pub fn i1e<T: Double>(x: T) -> T {
        i1e_f64(x as f64) as T
    }

    /// Returns the modified Bessel function of the second kind of order 0 (`scipy.special.k0`), elementwise.
    ///
    /// The result is infinite at 0, and NaN for negative x.
    ///
    /// # Errors
    /// Complex numbers.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> cuprum_core::Result<()> {
    /// assert_eq!(cuprum_special::k0(0.0)?.item()?, f64::INFINITY);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("special.k0(x, /, out=None, *, where=True, casting='same_kind', order='K', dtype=None)")]
    pub fn k0<T: Double>(x: T) -> T {
        k0_f64(x as f64) as T
    }

    /// Returns the modified Bessel function of the second kind of order 1 (`scipy.special.k1`), elementwise.
    ///
    /// The result is infinite at 0, and NaN for negative x.
    ///
    /// # Errors
    /// Complex numbers.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> cuprum_core::Result<()> {
    /// assert_eq!(cuprum_special::k1(0.0)?.item()?, f64::INFINITY);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("special.k1(x, /, out=None, *, where=True, casting='same_kind', order='K', dtype=None)")]
    pub fn k1<T: Double>(x: T) -> T {
        k1_f64(x as f64) as T
    }

    /// Returns `exp(x) * k0(x)` (`scipy.special.k0e`), elementwise.
    ///
    /// The result is infinite at 0, and NaN for negative x.
    ///
    /// # Errors
    /// Complex numbers.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> cuprum_core::Result<()> {
    /// assert_eq!(cuprum_special::k0e(0.0)?.item()?, f64::INFINITY);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("special.k0e(x, /, out=None, *, where=True, casting='same_kind', order='K', dtype=None)")]
    pub fn k0e<T: Double>(x: T) -> T {
        k0e_f64(x as f64) as T
    }

    /// Returns `exp(x) * k1(x)` (`scipy.special.k1e`), elementwise.
    ///
    /// The result is infinite at 0, and NaN for negative x.
    ///
    /// # Errors
    /// Complex numbers.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> cuprum_core::Result<()> {
    /// assert_eq!(cuprum_special::k1e(0.0)?.item()?, f64::INFINITY);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("special.k1e(x, /, out=None, *, where=True, casting='same_kind', order='K', dtype=None)")]
    pub fn k1e<T: Double>(x: T) -> T {
        k1e_f64(x as f64) as T
    }
}
